//! Spreading: claims of the same set go to different places, and the same claim always to the same.

use bindery_model::hash::fnv1;

/// By how much the places of a claim of that name are turned, before it is known how many there are. The claims of a
/// StatefulSet end in a number, and are turned one further each.
pub(crate) fn offset(claim: &str) -> u32 {
    let numbered = claim.rsplit_once('-').and_then(|(rest, number)| Some((rest, parse(number)?)));
    let (text, index) = match numbered {
        // What is before the last dash is the name of the claim's template: the set's name counts.
        Some((rest, index)) => (rest.rsplit_once('-').map_or(rest, |(_, set)| set), index),
        None => (claim, 0),
    };
    fnv1(text).wrapping_add(index)
}

/// A number without a sign.
fn parse(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_hashes_and_turns() {
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
        assert_eq!(offset("claim-+1"), fnv1("claim-+1"), "a sign makes no number");
        assert_eq!(offset("claim-99999999999"), fnv1("claim-99999999999"), "nor does too large a one");
    }
}
