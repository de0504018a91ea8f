//! Random UIDs and generated names, derived from a seed.

/// A deterministic generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u128) -> Self {
        let folded = (seed ^ (seed >> 64)) as u64;
        Self(folded)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A UID.
    pub fn uid(&mut self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        uuid_v4((u128::from(high) << 64) | u128::from(low))
    }

    /// A generated name that starts with `prefix`.
    pub fn name(&mut self, prefix: &str) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut end = prefix.len().min(58);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix[..end].to_owned();
        let mut bits = self.next_u64();
        for _ in 0..5 {
            name.push(char::from(LETTERS[(bits % LETTERS.len() as u64) as usize]));
            bits /= LETTERS.len() as u64;
        }
        name
    }
}

/// The version 4 UUID with these random bits.
pub fn uuid_v4(random: u128) -> String {
    let bits = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let part = |shift: u32, mask: u128| (bits >> shift) & mask;
    let (a, b, c) = (part(96, 0xffff_ffff), part(80, 0xffff), part(64, 0xffff));
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", part(48, 0xffff), part(0, 0xffff_ffff_ffff))
}
