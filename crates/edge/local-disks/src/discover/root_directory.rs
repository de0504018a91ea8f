//! The root directory of a file system, as recorded in its volume.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Owner, group and mode of the root directory of a file system, as an annotation records them:
/// `0:0:755`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootDirectory {
    /// The user ID of the owner.
    pub owner: u32,
    /// The group ID.
    pub group: u32,
    /// The permission bits; all others are ignored.
    pub mode: u32,
}

/// All permission bits.
const MODE_BITS: u32 = 0o7777;

impl fmt::Display for RootDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{:o}", self.owner, self.group, self.mode & MODE_BITS)
    }
}

impl FromStr for RootDirectory {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<RootDirectory, ParseIntError> {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().unwrap_or_default();
        let (owner, group) = (part().parse()?, part().parse()?);
        Ok(RootDirectory { owner, group, mode: u32::from_str_radix(part(), 8)? & MODE_BITS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let root = RootDirectory { owner: 1000, group: 2000, mode: 0o2775 };
        assert_eq!(root.to_string(), "1000:2000:2775");
        assert_eq!("1000:2000:2775".parse(), Ok(root));
        for text in ["", "1000", "0:0", "0:0:", "0:0:888", "a:b:755", "0:0:755:", "-1:0:755"] {
            assert!(text.parse::<RootDirectory>().is_err(), "{text}");
        }
    }
}
