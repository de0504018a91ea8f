//! Small maps that indices are built from.

use std::collections::BTreeSet;

use bindery_model::{Claim, ClaimKey, Name};
use rustc_hash::FxHashMap;

/// Several sorted values under one key. A key without values uses no memory.
#[derive(Debug, Clone)]
pub(crate) struct MultiMap<K, V>(FxHashMap<K, Vec<V>>);

impl<K, V> Default for MultiMap<K, V> {
    fn default() -> Self {
        MultiMap(FxHashMap::default())
    }
}

impl<K: std::hash::Hash + Eq, V: Ord> MultiMap<K, V> {
    pub fn get(&self, key: &K) -> &[V] {
        self.0.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn insert(&mut self, key: K, value: V) {
        let values = self.0.entry(key).or_insert_with(|| Vec::with_capacity(1));
        if let Err(at) = values.binary_search(&value) {
            values.insert(at, value);
        }
    }

    pub fn remove(&mut self, key: &K, value: &V) {
        let Some(values) = self.0.get_mut(key) else { return };
        if let Ok(at) = values.binary_search(value) {
            values.remove(at);
        }
        if values.is_empty() {
            self.0.remove(key);
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
