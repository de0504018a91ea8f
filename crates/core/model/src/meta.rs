//! What all objects have: identity, version, labels, and field errors.

use std::fmt;

use crate::Name;

/// The identity of an object, and the version that was seen.
///
/// The version is not compared, so two objects are equal when they differ in nothing that rules
/// read.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its UID, which distinguishes it from earlier objects with the same name.
    pub uid: Name,
    /// `metadata.resourceVersion`, which orders the states of objects of one kind.
    pub version: u64,
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid && self.name == other.name && self.namespace == other.namespace
    }
}

impl Eq for Meta {}

/// A field that could not be parsed. Rules make no decision about an object with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field, as in `spec.capacity.storage`.
    pub field: String,
    /// The error.
    pub problem: String,
}

impl FieldError {
    /// An error of a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), problem: problem.into() }
    }

    /// An error that quotes the value, truncated if it is long.
    pub fn quoting(field: &str, value: &str, problem: impl fmt::Display) -> FieldError {
        const SHOWN_MAX: usize = 64;
        let shown: String = value.chars().take(SHOWN_MAX).collect();
        let more = if shown.len() < value.len() { "…" } else { "" };
        FieldError::new(field, format!("{shown:?}{more}: {problem}"))
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Labels, sorted by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Name, Name)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&Name> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = &(Name, Name)> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same labels with one of them set to a value, or removed.
    #[must_use]
    pub fn with(&self, key: &Name, value: Option<&Name>) -> Labels {
        let others = self.0.iter().filter(|(known, _)| known != key).cloned();
        others.chain(value.map(|value| (key.clone(), value.clone()))).collect()
    }
}

impl FromIterator<(Name, Name)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Name, Name)>>(labels: I) -> Self {
        let mut sorted: Vec<_> = labels.into_iter().collect();
        sorted.sort();
        sorted.dedup_by(|later, earlier| later.0 == earlier.0);
        Labels(sorted.into())
    }
}
