//! What rules look things up by, kept current with every change of what they are shown.

use std::collections::BTreeSet;

use bindery_model::{Claim, ClaimKey, Name, Pod, PodKey};
use rustc_hash::FxHashMap;

/// Keys that stand under another key. A key without entries costs nothing.
#[derive(Debug)]
pub(crate) struct Under<K, V>(FxHashMap<K, Vec<V>>);

impl<K, V> Default for Under<K, V> {
    fn default() -> Self {
        Under(FxHashMap::default())
    }
}

impl<K: std::hash::Hash + Eq, V: Ord> Under<K, V> {
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

/// Claims that look for any volume, by what they say of their class: `None` when they say nothing.
#[derive(Debug, Default)]
pub(crate) struct Looking(FxHashMap<Option<Name>, BTreeSet<ClaimKey>>);

impl Looking {
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

/// Pods by the claims that they use.
#[derive(Debug, Default)]
pub(crate) struct PodsByClaim(Under<ClaimKey, PodKey>);

impl PodsByClaim {
    pub fn moved(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        if let Some(pod) = before {
            for claim in pod.claim_keys() {
                self.0.remove(&claim, &pod.key());
            }
        }
        if let Some(pod) = after {
            for claim in pod.claim_keys() {
                self.0.insert(claim, pod.key());
            }
        }
    }

    pub fn get(&self, claim: &ClaimKey) -> &[PodKey] {
        self.0.get(claim)
    }
}
