//! Small maps that indices are built from.

use std::collections::BTreeSet;

use bindery_model::{Claim, ClaimKey, Name};
use rustc_hash::FxHashMap;

/// Sorted values under each key. Nearly every key has exactly one value, which is stored without an
/// allocation; but there may be as many as there are objects, so a change must not move all of
/// them.
#[derive(Debug, Clone)]
pub(crate) struct MultiMap<K, V>(FxHashMap<K, Values<V>>);

#[derive(Debug, Clone)]
enum Values<V> {
    One(V),
    /// Two or more, until all but one are removed.
    Many(BTreeSet<V>),
}

impl<K, V> Default for MultiMap<K, V> {
    fn default() -> Self {
        MultiMap(FxHashMap::default())
    }
}

impl<K: std::hash::Hash + Eq, V: Ord + Clone> MultiMap<K, V> {
    /// The values of a key, in order.
    pub fn get(&self, key: &K) -> impl Iterator<Item = &V> {
        let (one, many) = match self.0.get(key) {
            None => (None, None),
            Some(Values::One(value)) => (Some(value), None),
            Some(Values::Many(values)) => (None, Some(values)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// The number of values of a key.
    pub fn count(&self, key: &K) -> usize {
        match self.0.get(key) {
            None => 0,
            Some(Values::One(_)) => 1,
            Some(Values::Many(values)) => values.len(),
        }
    }

    pub fn insert(&mut self, key: K, value: V) {
        match self.0.get_mut(&key) {
            None => {
                self.0.insert(key, Values::One(value));
            }
            Some(Values::Many(values)) => {
                values.insert(value);
            }
            Some(values) => {
                if let Values::One(other) = values
                    && *other != value
                {
                    *values = Values::Many([other.clone(), value].into());
                }
            }
        }
    }

    pub fn remove(&mut self, key: &K, value: &V) {
        match self.0.get_mut(key) {
            Some(Values::One(one)) if one == value => {
                self.0.remove(key);
            }
            Some(values @ Values::Many(_)) => {
                let Values::Many(many) = values else { return };
                many.remove(value);
                if many.len() == 1
                    && let Some(last) = many.pop_first()
                {
                    *values = Values::One(last);
                }
            }
            Some(Values::One(_)) | None => {}
        }
    }
}

/// Claims that need a volume, by their StorageClass: `None` when they do not specify one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClaimsByClass(FxHashMap<Option<Name>, BTreeSet<ClaimKey>>);

impl ClaimsByClass {
    fn class_of(claim: &Claim) -> Option<Name> {
        claim.has_class().then(|| claim.class().clone())
    }

    pub fn insert(&mut self, claim: &Claim) {
        self.0.entry(Self::class_of(claim)).or_default().insert(claim.key());
    }

    pub fn remove(&mut self, claim: &Claim) {
        let class = Self::class_of(claim);
        let Some(keys) = self.0.get_mut(&class) else { return };
        keys.remove(&claim.key());
        if keys.is_empty() {
            self.0.remove(&class);
        }
    }

    pub fn get(&self, class: Option<&Name>) -> impl Iterator<Item = &ClaimKey> {
        self.0.get(&class.cloned()).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_and_each_is_there_once() {
        let mut map: MultiMap<&str, u32> = MultiMap::default();
        let values = |map: &MultiMap<&str, u32>| map.get(&"k").copied().collect::<Vec<_>>();
        for value in [3, 1, 2, 1, 3] {
            map.insert("k", value);
        }
        assert_eq!(values(&map), [1, 2, 3]);
        map.remove(&"k", &2);
        map.remove(&"k", &9);
        assert_eq!(values(&map), [1, 3]);
        map.remove(&"k", &1);
        map.remove(&"k", &1);
        assert_eq!(values(&map), [3]);
        map.remove(&"k", &3);
        assert!(values(&map).is_empty() && map.0.is_empty(), "a key without values uses no memory");
    }

    #[test]
    fn a_change_under_a_key_with_many_values_moves_few_of_them() {
        let mut map: MultiMap<(), u32> = MultiMap::default();
        (1..=10_000).for_each(|value| map.insert((), value));
        let places = |map: &MultiMap<(), u32>| -> BTreeSet<(u32, usize)> {
            map.get(&()).map(|value| (*value, std::ptr::from_ref(value).addr())).collect()
        };
        let before = places(&map);
        map.insert((), 0);
        let moved = before.difference(&places(&map)).count();
        assert!(moved < 100, "{moved} of 10,000 values were moved to insert one");
    }
}
