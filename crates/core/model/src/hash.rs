//! 32-bit FNV hashes, by which upstream derives names, and digests of states.

use std::hash::{DefaultHasher, Hash, Hasher};

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// FNV-1a.
pub fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
}

/// FNV-1, which multiplies first and yields other values than FNV-1a.
pub fn fnv1(text: &str) -> u32 {
    text.bytes().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u32::from(byte))
}

/// A digest of a value, which is the same in every run of one build.
pub fn digest(value: impl Hash) -> u64 {
    let mut state = DefaultHasher::new();
    value.hash(&mut state);
    state.finish()
}

/// Adds items to a digest regardless of their order.
pub fn digest_unordered(items: impl IntoIterator<Item = impl Hash>, state: &mut impl Hasher) {
    items
        .into_iter()
        .fold((0_u64, 0_u64), |(count, sum), item| (count + 1, sum.wrapping_add(digest(item))))
        .hash(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_items_does_not_change_an_unordered_digest() {
        let digest_of = |items: &[&str]| {
            let mut state = DefaultHasher::new();
            digest_unordered(items, &mut state);
            state.finish()
        };
        assert_eq!(digest_of(&["a", "b"]), digest_of(&["b", "a"]));
        assert_ne!(digest_of(&["a", "b"]), digest_of(&["a"]));
        assert_ne!(digest_of(&[]), digest_of(&[""]));
    }

    #[test]
    fn hashes_match_known_values() {
        assert_eq!(fnv1a("external-provisioner"), 0x53f4_0b57);
        assert_eq!(fnv1("web"), 1_181_096_325);
        assert_eq!((fnv1a(""), fnv1("")), (OFFSET, OFFSET));
    }
}
