//! Random numbers that are the same on every machine.

/// A deterministic generator (SplitMix64).
pub struct Rng(u64);

/// The FNV-1a hash of a text. The random walks depend on it, so it must not change.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Rng {
    /// A generator that is seeded with a text.
    pub fn from_text(text: &str) -> Rng {
        Rng(hash(text))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64().checked_rem(end).unwrap_or_default()
    }

    /// One of the items.
    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(list.len() as u64)).unwrap_or_default();
        list.get(at).copied().unwrap_or_default()
    }
}
