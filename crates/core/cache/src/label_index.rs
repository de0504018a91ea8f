//! Volumes by their labels, for claims with a selector.
//!
//! Volumes with equal labels are in one set, because a selector matches all of them or none. So a
//! selector is tested once for each set, and only for those sets that have a label which it
//! requires. Its cost is the number of different combinations of labels that include the rarest
//! required label, however many volumes have them.

use std::sync::Arc;

use bindery_model::{Labels, Name, Selector};
use rustc_hash::{FxHashMap, FxHashSet};

/// Sets of volumes by their labels.
#[derive(Debug, Clone)]
pub(crate) struct LabelIndex<S> {
    sets: FxHashMap<Arc<Labels>, S>,
    /// The combinations that have a label.
    with_label: FxHashMap<(Name, Name), FxHashSet<Arc<Labels>>>,
}

impl<S> Default for LabelIndex<S> {
    fn default() -> Self {
        LabelIndex { sets: FxHashMap::default(), with_label: FxHashMap::default() }
    }
}

impl<S: Default> LabelIndex<S> {
    /// Changes the set of volumes with these labels, which may be empty before.
    pub fn insert(&mut self, labels: &Labels, insert: impl FnOnce(&mut S)) {
        if let Some(set) = self.sets.get_mut(labels) {
            return insert(set);
        }
        let combination = Arc::new(labels.clone());
        for (key, value) in labels.iter() {
            self.with_label.entry((key.clone(), value.clone())).or_default().insert(combination.clone());
        }
        insert(self.sets.entry(combination).or_default());
    }

    /// Changes the set of volumes with these labels. `remove` returns whether it is empty then.
    pub fn remove(&mut self, labels: &Labels, remove: impl FnOnce(&mut S) -> bool) {
        if !self.sets.get_mut(labels).is_some_and(remove) {
            return;
        }
        self.sets.remove(labels);
        for (key, value) in labels.iter() {
            let label = (key.clone(), value.clone());
            let Some(combinations) = self.with_label.get_mut(&label) else { continue };
            combinations.remove(labels);
            if combinations.is_empty() {
                self.with_label.remove(&label);
            }
        }
    }

    /// The sets that a selector matches, in no order.
    pub fn matching(&self, selector: &Selector) -> Vec<&S> {
        let with_one_of = |(key, values): (&Name, &[Name])| -> Vec<&FxHashSet<Arc<Labels>>> {
            // A value may be repeated.
            let values: FxHashSet<&Name> = values.iter().collect();
            values.into_iter().filter_map(|value| self.with_label.get(&(key.clone(), value.clone()))).collect()
        };
        let required =
            selector.requirements().filter_map(|required| Some((required.key(), required.required_values()?)));
        let rarest = required.map(with_one_of).min_by_key(|sets| sets.iter().map(|set| set.len()).sum::<usize>());
        match rarest {
            Some(combinations) => {
                let combinations = combinations.into_iter().flatten().filter(|labels| selector.matches(labels));
                combinations.filter_map(|labels| self.sets.get(labels)).collect()
            }
            None => self.sets.iter().filter(|(labels, _)| selector.matches(labels)).map(|(_, set)| set).collect(),
        }
    }
}
