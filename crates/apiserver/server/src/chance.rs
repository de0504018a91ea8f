//! Chance that is handed in: UIDs and generated names that derive from a seed.

/// A source of numbers that look like chance, and are the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// A source from a seed.
    pub fn new(seed: u128) -> Self {
        let folded = (seed ^ (seed >> 64)) as u64;
        Self(folded)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A UID, version 4.
    pub fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }

    /// A name that begins with `prefix`.
    pub fn name(&mut self, prefix: &str) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut end = prefix.len().min(58);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix[..end].to_owned();
        let mut chance = self.next();
        for _ in 0..5 {
            name.push(char::from(LETTERS[(chance % LETTERS.len() as u64) as usize]));
            chance /= LETTERS.len() as u64;
        }
        name
    }
}
