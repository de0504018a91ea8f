//! Chance that is the same on every machine.

/// Numbers that only depend on where they begin (splitmix64).
pub struct Dice(u64);

/// FNV-1a.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Dice {
    /// Begins with a text.
    pub fn of_text(text: &str) -> Dice {
        Dice(hash(text))
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another, or 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.throw().checked_rem(end).unwrap_or_default()
    }

    /// One of several.
    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(list.len() as u64)).unwrap_or_default();
        list.get(at).copied().unwrap_or_default()
    }
}
