//! What all objects have: a name, an identity, a version; and what is wrong with them.

use std::fmt;

use crate::Name;

/// Who an object is, and which state of it was seen.
///
/// Two are equal when they are of the same object, whatever the state: so two objects are equal when nothing that rules read
/// tells them apart.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Its namespace; empty for objects that have none.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Which object of that name it is.
    pub uid: Name,
    /// The state of it that was seen (`metadata.resourceVersion`). Orders the states of one kind.
    pub version: u64,
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid && self.name == other.name && self.namespace == other.namespace
    }
}

impl Eq for Meta {}

/// A field that could not be understood. Nothing is decided about an object that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field, as in `spec.capacity.storage`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FieldError {
    /// A flaw of a field. Long values are cut in the message.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), problem: problem.into() }
    }

    /// A flaw that quotes the value that was not understood.
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Name, Name)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&Name> {
        let place = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[place].1)
    }

    /// The same labels with another value of one of them; without it when there is none.
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
