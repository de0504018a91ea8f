//! 32-bit FNV hashes, by which upstream derives names.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_known_values() {
        assert_eq!(fnv1a("external-provisioner"), 0x53f4_0b57);
        assert_eq!(fnv1("web"), 1_181_096_325);
        assert_eq!((fnv1a(""), fnv1("")), (OFFSET, OFFSET));
    }
}
