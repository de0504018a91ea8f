//! Spreading: the claims of a StatefulSet start with different topology segments, and a claim
//! always with the same one.

use bindery_model::hash::fnv1;

/// By how much the list of segments is rotated for a claim of this name, modulo its length. The
/// claims of a StatefulSet end in a number, and are rotated by one more each.
pub(crate) fn offset(claim: &str) -> u32 {
    let numbered = claim.rsplit_once('-').and_then(|(rest, number)| Some((rest, parse(number)?)));
    let (text, index) = match numbered {
        // `rest` is TEMPLATE-SET; only the name of the StatefulSet counts.
        Some((rest, index)) => (rest.rsplit_once('-').map_or(rest, |(_, set)| set), index),
        None => (claim, 0),
    };
    fnv1(text).wrapping_add(index)
}

/// Parses digits only, without a sign.
fn parse(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_equal_upstreams() {
        let cases = [
            ("web-0", 1_181_096_325, 0, 0),
            ("data-web-0", 1_181_096_325, 0, 0),
            ("data-web-2", 1_181_096_325, 2, 2),
            ("www-my-sts-1", 628_126_499, 1, 0),
            ("claim", 1_216_680_299, 0, 2),
            ("testPVC", 1_142_619_062, 0, 2),
        ];
        for (claim, hash, index, of_three) in cases {
            assert_eq!(offset(claim), u32::wrapping_add(hash, index), "{claim}");
            assert_eq!(offset(claim) % 3, of_three, "{claim}");
        }
        assert_eq!(offset("claim-+1"), fnv1("claim-+1"), "a sign is not part of a number");
        assert_eq!(offset("claim-99999999999"), fnv1("claim-99999999999"), "the number is too large");
    }
}
