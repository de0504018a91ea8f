//! Access modes: the ordered list of an object, and the set that matching compares.

use std::fmt;

/// How a volume may be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessMode {
    /// Read and write, by one node.
    ReadWriteOnce = 0,
    /// Read only, by many nodes.
    ReadOnlyMany = 1,
    /// Read and write, by many nodes.
    ReadWriteMany = 2,
    /// Read and write, by one pod.
    ReadWriteOncePod = 3,
}

impl AccessMode {
    /// All of them, in upstream's order.
    pub const ALL: [AccessMode; 4] =
        [AccessMode::ReadWriteOnce, AccessMode::ReadOnlyMany, AccessMode::ReadWriteMany, AccessMode::ReadWriteOncePod];

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            AccessMode::ReadWriteOnce => "ReadWriteOnce",
            AccessMode::ReadOnlyMany => "ReadOnlyMany",
            AccessMode::ReadWriteMany => "ReadWriteMany",
            AccessMode::ReadWriteOncePod => "ReadWriteOncePod",
        }
    }

    /// The mode with that name in the API.
    pub fn parse(text: &str) -> Option<AccessMode> {
        AccessMode::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// Access modes in the order in which an object lists them. A claim's status repeats the list of
/// its volume verbatim.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct AccessModes {
    /// Two bits per mode, the first mode lowest.
    packed: u32,
    count: u8,
}

impl AccessModes {
    /// A list with more entries is malformed: there are only four modes.
    pub const COUNT_MAX: usize = 16;

    /// Adds a mode at the end; `false` when the list is full.
    #[must_use]
    pub fn push(&mut self, mode: AccessMode) -> bool {
        if usize::from(self.count) == Self::COUNT_MAX {
            return false;
        }
        self.packed |= (mode as u32) << (2 * self.count);
        self.count += 1;
        true
    }

    /// The modes, in order.
    pub fn iter(self) -> impl Iterator<Item = AccessMode> {
        (0..self.count).map(move |i| AccessMode::ALL[(self.packed >> (2 * i) & 3) as usize])
    }

    /// The modes without order or repetition.
    pub fn set(self) -> AccessSet {
        AccessSet(self.iter().fold(0, |bits, mode| bits | 1 << (mode as u8)))
    }
}

impl FromIterator<AccessMode> for AccessModes {
    fn from_iter<I: IntoIterator<Item = AccessMode>>(modes: I) -> Self {
        let mut list = AccessModes::default();
        for mode in modes {
            if !list.push(mode) {
                break;
            }
        }
        list
    }
}

impl fmt::Debug for AccessModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A set of access modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AccessSet(u8);

impl AccessSet {
    /// Whether all modes of `other` are in this set.
    pub fn contains(self, other: AccessSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The modes that are not in `other`.
    #[must_use]
    pub fn without(self, other: AccessSet) -> AccessSet {
        AccessSet(self.0 & !other.0)
    }

    /// The modes, in upstream's order.
    pub fn iter(self) -> impl Iterator<Item = AccessMode> {
        AccessMode::ALL.into_iter().filter(move |mode| self.0 & (1 << (*mode as u8)) != 0)
    }

    /// The number of modes.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl fmt::Display for AccessSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(AccessMode::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessMode::*;

    #[test]
    fn lists_are_ordered_and_sets_are_not() {
        let a: AccessModes = [ReadWriteMany, ReadWriteOnce].into_iter().collect();
        let b: AccessModes = [ReadWriteOnce, ReadWriteMany].into_iter().collect();
        assert_ne!(a, b);
        assert_eq!(a.set(), b.set());
        assert_eq!(a.iter().collect::<Vec<_>>(), [ReadWriteMany, ReadWriteOnce]);
    }

    #[test]
    fn set_contains_its_subsets() {
        let set = |modes: &[AccessMode]| modes.iter().copied().collect::<AccessModes>().set();
        let wide = set(&[ReadWriteOnce, ReadOnlyMany, ReadOnlyMany]);
        assert_eq!(wide.count(), 2);
        assert!(wide.contains(set(&[ReadOnlyMany])));
        assert!(wide.contains(set(&[])));
        assert!(!wide.contains(set(&[ReadOnlyMany, ReadWriteOncePod])));
    }

    #[test]
    fn push_to_a_full_list_fails() {
        let mut list: AccessModes = [ReadWriteOnce; 16].into_iter().collect();
        assert!(!list.push(ReadWriteOnce));
    }
}
