//! Kinds that are served but always empty.
//!
//! kube-scheduler waits until it has listed them. They can be read and watched, but not created.

use super::strategy::DefaultStrategy;
use super::{AGE, DEFAULT_BEHAVIOR, Kind, NAME, PrintContext, print};
use serde_json::Value;

const READ_ONLY: &[&str] = &["get", "list", "watch"];

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), print::age(object, context)]
}

/// A kind that is always empty.
const fn empty(
    group: &'static str,
    kind: &'static str,
    [plural, singular]: [&'static str; 2],
    namespaced: bool,
) -> Kind {
    Kind {
        group,
        version: "v1",
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced,
        verbs: READ_ONLY,
        subresources: &[],
        columns: &[NAME, AGE],
        cells,
        bucket: plural,
        strategy: &DefaultStrategy,
        behavior: DEFAULT_BEHAVIOR,
    }
}

pub(super) static SERVICE: Kind = empty("", "Service", ["services", "service"], true);
pub(super) static REPLICATION_CONTROLLER: Kind =
    empty("", "ReplicationController", ["replicationcontrollers", "replicationcontroller"], true);
pub(super) static REPLICA_SET: Kind = empty("apps", "ReplicaSet", ["replicasets", "replicaset"], true);
pub(super) static STATEFUL_SET: Kind = empty("apps", "StatefulSet", ["statefulsets", "statefulset"], true);
pub(super) static DISRUPTION_BUDGET: Kind =
    empty("policy", "PodDisruptionBudget", ["poddisruptionbudgets", "poddisruptionbudget"], true);
pub(super) static DEVICE_CLASS: Kind = empty("resource.k8s.io", "DeviceClass", ["deviceclasses", "deviceclass"], false);
pub(super) static RESOURCE_CLAIM: Kind =
    empty("resource.k8s.io", "ResourceClaim", ["resourceclaims", "resourceclaim"], true);
pub(super) static RESOURCE_SLICE: Kind =
    empty("resource.k8s.io", "ResourceSlice", ["resourceslices", "resourceslice"], false);
