//! A map of objects that is copied in constant time, and whose keys are listed in order.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hash};
use std::ops::Bound;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// A map with more entries is split into this many parts.
const PARTS: usize = 256;
/// Below this many entries, copying a part is as cheap as it would be to copy a small one.
const UNSPLIT_MAX: usize = 1024;

/// The entries, which a copy shares until they are changed: a change copies the part that it is in,
/// one of 256, and only while there is a copy.
#[derive(Debug, Clone)]
pub(crate) struct Entries<K, V>(Vec<Arc<FxHashMap<K, V>>>);

impl<K: Hash + Eq, V> Entries<K, V> {
    fn part_of(&self, key: &K) -> usize {
        // The parts' own maps use the lowest and the highest bits.
        let hash = || usize::try_from(FxBuildHasher.hash_one(key) >> 16 & 0xffff).unwrap_or_default();
        if self.0.len() == 1 { 0 } else { hash() % self.0.len() }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.0[self.part_of(key)].get(key)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().flat_map(|part| part.iter())
    }
}

/// Objects by key.
#[derive(Debug, Clone)]
pub(crate) struct ObjectMap<K, V> {
    entries: Entries<K, V>,
    /// All keys, so that a walk in order can pause between any two of them.
    keys: BTreeSet<K>,
}

impl<K, V> Default for ObjectMap<K, V> {
    fn default() -> Self {
        ObjectMap { entries: Entries(vec![Arc::default()]), keys: BTreeSet::new() }
    }
}

impl<K: Hash + Ord + Clone, V: Clone> ObjectMap<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }

    /// The keys after one of them, or all, in order.
    pub fn keys_after(&self, after: Option<&K>) -> impl Iterator<Item = &K> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range((start, Bound::Unbounded))
    }

    /// The entries as they are now.
    pub fn entries(&self) -> Entries<K, V> {
        self.entries.clone()
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.keys.len() == UNSPLIT_MAX && self.entries.0.len() == 1 {
            self.split();
        }
        let part = self.entries.part_of(&key);
        let before = Arc::make_mut(&mut self.entries.0[part]).insert(key.clone(), value);
        if before.is_none() {
            self.keys.insert(key);
        }
        before
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.keys.remove(key).then_some(())?;
        let part = self.entries.part_of(key);
        Arc::make_mut(&mut self.entries.0[part]).remove(key)
    }

    fn split(&mut self) {
        let whole = std::mem::replace(&mut self.entries, Entries(vec![Arc::default(); PARTS]));
        for (key, value) in whole.iter() {
            let part = self.entries.part_of(key);
            Arc::make_mut(&mut self.entries.0[part]).insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 20_000;

    fn map() -> ObjectMap<String, usize> {
        let mut map = ObjectMap::default();
        (0..MANY).for_each(|n| assert_eq!(map.insert(format!("claim-{n}"), n), None));
        map
    }

    #[test]
    fn entries_are_found_before_and_after_the_split() {
        let mut map = map();
        assert_eq!(map.len(), MANY);
        assert!((0..MANY).all(|n| map.get(&format!("claim-{n}")) == Some(&n)));
        assert_eq!(map.insert("claim-7".into(), 0), Some(7));
        assert_eq!((map.remove(&"claim-7".into()), map.remove(&"claim-7".into())), (Some(0), None));
        assert_eq!((map.len(), map.iter().count()), (MANY - 1, MANY - 1));
    }

    #[test]
    fn a_copy_of_the_entries_does_not_follow_changes_and_a_change_copies_a_small_part() {
        let mut map = map();
        let copy = map.entries();
        map.insert("claim-1".into(), 0);
        map.remove(&"claim-2".into());
        assert_eq!((copy.get(&"claim-1".into()), copy.get(&"claim-2".into())), (Some(&1), Some(&2)));
        let is_copied = |(one, other): &(&Arc<_>, &Arc<_>)| !Arc::ptr_eq(one, other);
        let copied: Vec<_> = copy.0.iter().zip(&map.entries.0).filter(is_copied).collect();
        assert!((1..=2).contains(&copied.len()), "only the parts that changed are copied: {}", copied.len());
        let largest = copy.0.iter().map(|part| part.len()).max().unwrap_or_default();
        assert!(largest < 4 * MANY / PARTS, "keys are spread evenly: {largest} are in one part");
    }

    #[test]
    fn keys_are_listed_in_order_from_anywhere() {
        let map = map();
        let mut keys: Vec<String> = (0..MANY).map(|n| format!("claim-{n}")).collect();
        keys.sort();
        assert!(map.keys_after(None).eq(&keys));
        assert!(map.keys_after(Some(&keys[99])).eq(&keys[100..]));
        assert!(map.keys_after(Some(&"claim-0-deleted".into())).eq(&keys[1..]));
    }
}
