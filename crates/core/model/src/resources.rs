//! How much there is of what pods need, and how much of it is asked for.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::{FieldErrors, WireQuantity};
use crate::{Name, Quantity};

/// Amounts of things by their names; what is not there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(Box<[(Name, i128)]>);

impl Amounts {
    /// How much there is of something.
    pub fn of(&self, what: &str) -> i128 {
        let place = self.0.binary_search_by(|(name, _)| name.as_str().cmp(what));
        place.map(|place| self.0[place].1).unwrap_or_default()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, i128)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// With more of something.
    pub fn add(&mut self, what: &Name, by: i128) {
        *self = self.merged(&[(what.clone(), by)].into_iter().collect(), i128::saturating_add);
    }

    /// What comes of two amounts of everything that either has.
    fn merged(&self, other: &Amounts, merge: fn(i128, i128) -> i128) -> Amounts {
        if self.0.is_empty() && other.0.is_empty() {
            return Amounts::default();
        }
        let only_there = other.0.iter().filter(|(name, _)| self.of(name) == 0);
        let names = self.0.iter().chain(only_there).map(|(name, _)| name);
        names.map(|name| (name.clone(), merge(self.of(name), other.of(name)))).collect()
    }
}

impl FromIterator<(Name, i128)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (Name, i128)>>(amounts: I) -> Amounts {
        let mut amounts: Vec<_> = amounts.into_iter().filter(|(_, amount)| *amount != 0).collect();
        amounts.sort();
        Amounts(amounts.into())
    }
}

/// How much a pod asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Processors, in thousandths.
    pub cpu_millis: i128,
    /// Memory, in bytes.
    pub memory_bytes: i128,
    /// Anything else that is counted: a node's own disk and huge pages, in bytes, and devices.
    pub others: Amounts,
}

impl Needs {
    /// What is counted of processors and memory for a pod that asks for none when nodes are compared: it will use some all the same.
    pub fn usual(&self) -> Needs {
        const CPU_MILLIS: i128 = 100;
        const MEMORY_BYTES: i128 = 200 * 1024 * 1024;
        let usual = Needs { cpu_millis: CPU_MILLIS, memory_bytes: MEMORY_BYTES, others: Amounts::default() };
        Needs { others: Amounts::default(), ..self.or(&usual) }
    }

    /// With another's.
    #[must_use]
    pub fn plus(&self, other: &Needs) -> Needs {
        self.merged(other, i128::saturating_add)
    }

    /// Without another's.
    #[must_use]
    pub fn minus(&self, other: &Needs) -> Needs {
        self.merged(other, i128::saturating_sub)
    }

    /// Of everything the larger amount.
    pub(crate) fn max(&self, other: &Needs) -> Needs {
        self.merged(other, i128::max)
    }

    /// With another's amounts of what it does not ask for.
    pub(crate) fn or(&self, other: &Needs) -> Needs {
        self.merged(other, |own, other| if own > 0 { own } else { other })
    }

    fn merged(&self, other: &Needs, merge: fn(i128, i128) -> i128) -> Needs {
        Needs {
            cpu_millis: merge(self.cpu_millis, other.cpu_millis),
            memory_bytes: merge(self.memory_bytes, other.memory_bytes),
            others: self.others.merged(&other.others, merge),
        }
    }
}

/// How much a node has for pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// Processors, in thousandths.
    pub cpu_millis: i128,
    /// Memory, in bytes.
    pub memory_bytes: i128,
    /// How many pods.
    pub pods: i128,
    /// Anything else that is counted.
    pub others: Amounts,
}

/// A list of resources on the wire.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct WireAmounts(BTreeMap<Name, Option<WireQuantity>>);

impl WireAmounts {
    /// What a pod asks for. `field` is where it says so.
    pub fn needs(mut self, field: &str, flaws: &mut FieldErrors) -> Needs {
        Needs {
            cpu_millis: self.take("cpu", field, flaws).millis(),
            memory_bytes: self.take("memory", field, flaws).units(),
            others: self.rest(field, flaws),
        }
    }

    /// What a node has.
    pub fn allocatable(mut self, field: &str, flaws: &mut FieldErrors) -> Allocatable {
        Allocatable {
            cpu_millis: self.take("cpu", field, flaws).millis(),
            memory_bytes: self.take("memory", field, flaws).units(),
            pods: self.take("pods", field, flaws).units(),
            others: self.rest(field, flaws),
        }
    }

    fn take(&mut self, what: &str, field: &str, flaws: &mut FieldErrors) -> Quantity {
        let amount = flaws.quantity(&format!("{field}.{what}"), self.0.remove(what).flatten());
        amount.unwrap_or_else(|| Quantity::zero().clone())
    }

    fn rest(mut self, field: &str, flaws: &mut FieldErrors) -> Amounts {
        let names: Vec<Name> = self.0.keys().cloned().collect();
        names.into_iter().map(|name| (name.clone(), self.take(&name, field, flaws).units())).collect()
    }
}
