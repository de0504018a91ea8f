//! Compute resources: what pods request and what nodes have.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::{FieldErrors, WireQuantity};
use crate::{Name, Quantity};

/// Amounts by resource name; a missing resource counts as zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceList(Box<[(Name, i128)]>);

impl ResourceList {
    /// The amount of a resource.
    pub fn of(&self, resource: &str) -> i128 {
        let at = self.0.binary_search_by(|(name, _)| name.as_str().cmp(resource));
        at.map(|at| self.0[at].1).unwrap_or_default()
    }

    /// All amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, i128)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Adds an amount of a resource.
    pub fn add(&mut self, resource: &Name, by: i128) {
        *self = self.merged(&[(resource.clone(), by)].into_iter().collect(), i128::saturating_add);
    }

    /// Combines the amounts of every resource in either list.
    fn merged(&self, other: &ResourceList, merge: fn(i128, i128) -> i128) -> ResourceList {
        if self.0.is_empty() && other.0.is_empty() {
            return ResourceList::default();
        }
        let only_in_other = other.0.iter().filter(|(name, _)| self.of(name) == 0);
        let names = self.0.iter().chain(only_in_other).map(|(name, _)| name);
        names.map(|name| (name.clone(), merge(self.of(name), other.of(name)))).collect()
    }
}

impl FromIterator<(Name, i128)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (Name, i128)>>(amounts: I) -> ResourceList {
        let mut amounts: Vec<_> = amounts.into_iter().filter(|(_, amount)| *amount != 0).collect();
        amounts.sort();
        ResourceList(amounts.into())
    }
}

/// The resource requests of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRequests {
    /// CPU, in millicores.
    pub cpu_millis: i128,
    /// Memory, in bytes.
    pub memory_bytes: i128,
    /// Other resources: ephemeral storage and huge pages, in bytes, and extended resources.
    pub others: ResourceList,
}

impl ResourceRequests {
    /// CPU and memory for scoring nodes, with upstream's defaults for a pod that requests none.
    pub fn nonzero(&self) -> ResourceRequests {
        const CPU_MILLIS: i128 = 100;
        const MEMORY_BYTES: i128 = 200 * 1024 * 1024;
        let default =
            ResourceRequests { cpu_millis: CPU_MILLIS, memory_bytes: MEMORY_BYTES, others: ResourceList::default() };
        ResourceRequests { others: ResourceList::default(), ..self.or(&default) }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &ResourceRequests) -> ResourceRequests {
        self.merged(other, i128::saturating_add)
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(&self, other: &ResourceRequests) -> ResourceRequests {
        self.merged(other, i128::saturating_sub)
    }

    /// The larger amount of every resource.
    pub(crate) fn max(&self, other: &ResourceRequests) -> ResourceRequests {
        self.merged(other, i128::max)
    }

    /// With the amounts of `other` for resources that it does not request.
    pub(crate) fn or(&self, other: &ResourceRequests) -> ResourceRequests {
        self.merged(other, |own, other| if own > 0 { own } else { other })
    }

    fn merged(&self, other: &ResourceRequests, merge: fn(i128, i128) -> i128) -> ResourceRequests {
        ResourceRequests {
            cpu_millis: merge(self.cpu_millis, other.cpu_millis),
            memory_bytes: merge(self.memory_bytes, other.memory_bytes),
            others: self.others.merged(&other.others, merge),
        }
    }
}

/// The resources of a node that pods can use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// CPU, in millicores.
    pub cpu_millis: i128,
    /// Memory, in bytes.
    pub memory_bytes: i128,
    /// The maximum number of pods.
    pub pods: i128,
    /// Other resources.
    pub others: ResourceList,
}

/// A resource list in JSON.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct WireResourceList(BTreeMap<Name, Option<WireQuantity>>);

impl WireResourceList {
    /// The requests of a pod, from a field.
    pub fn requests(mut self, field: &str, errors: &mut FieldErrors) -> ResourceRequests {
        ResourceRequests {
            cpu_millis: self.take("cpu", field, errors).millis(),
            memory_bytes: self.take("memory", field, errors).units(),
            others: self.rest(field, errors),
        }
    }

    /// The resources of a node, from a field.
    pub fn allocatable(mut self, field: &str, errors: &mut FieldErrors) -> Allocatable {
        Allocatable {
            cpu_millis: self.take("cpu", field, errors).millis(),
            memory_bytes: self.take("memory", field, errors).units(),
            pods: self.take("pods", field, errors).units(),
            others: self.rest(field, errors),
        }
    }

    fn take(&mut self, resource: &str, field: &str, errors: &mut FieldErrors) -> Quantity {
        let amount = errors.quantity(&format!("{field}.{resource}"), self.0.remove(resource).flatten());
        amount.unwrap_or_else(|| Quantity::zero().clone())
    }

    fn rest(mut self, field: &str, errors: &mut FieldErrors) -> ResourceList {
        let names: Vec<Name> = self.0.keys().cloned().collect();
        names.into_iter().map(|name| (name.clone(), self.take(&name, field, errors).units())).collect()
    }
}
