//! Kinds that are served but always empty.
//!
//! kube-scheduler waits until it has listed them. They can be read and watched, but not created.

use super::{DEFAULT_KIND, Kind};

/// A kind that is always empty.
const fn empty(group: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { group, kind, plural, namespaced, verbs: &["get", "list", "watch"], ..DEFAULT_KIND }
}

pub(super) static SERVICE: Kind = empty("", "Service", "services", true);
pub(super) static REPLICATION_CONTROLLER: Kind = empty("", "ReplicationController", "replicationcontrollers", true);
pub(super) static REPLICA_SET: Kind = empty("apps", "ReplicaSet", "replicasets", true);
pub(super) static STATEFUL_SET: Kind = empty("apps", "StatefulSet", "statefulsets", true);
pub(super) static DISRUPTION_BUDGET: Kind = empty("policy", "PodDisruptionBudget", "poddisruptionbudgets", true);
pub(super) static DEVICE_CLASS: Kind = empty("resource.k8s.io", "DeviceClass", "deviceclasses", false);
pub(super) static RESOURCE_CLAIM: Kind = empty("resource.k8s.io", "ResourceClaim", "resourceclaims", true);
pub(super) static RESOURCE_SLICE: Kind = empty("resource.k8s.io", "ResourceSlice", "resourceslices", false);
