//! Kinds of which there are none, and of which none can be made.
//!
//! kube-scheduler looks at them before it decides where a pod goes, and does not begin until each was listed. They can be read and
//! watched, and are always empty: that is the truth here, and all that it asks for.

use super::{AGE, Kind, MANNERS, NAME, Rules, Sight, print};
use serde_json::Value;

const READ_ONLY: &[&str] = &["get", "list", "watch"];

#[derive(Debug)]
struct Bare;

impl Rules for Bare {}

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), print::age(object, sight)]
}

/// An entry: its kind, its names, and whether it lives in namespaces.
const fn bare(
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
        space: plural,
        rules: &Bare,
        manners: MANNERS,
    }
}

pub(super) static SERVICE: Kind = bare("", "Service", ["services", "service"], true);
pub(super) static REPLICATION_CONTROLLER: Kind =
    bare("", "ReplicationController", ["replicationcontrollers", "replicationcontroller"], true);
pub(super) static REPLICA_SET: Kind = bare("apps", "ReplicaSet", ["replicasets", "replicaset"], true);
pub(super) static STATEFUL_SET: Kind = bare("apps", "StatefulSet", ["statefulsets", "statefulset"], true);
pub(super) static DISRUPTION_BUDGET: Kind =
    bare("policy", "PodDisruptionBudget", ["poddisruptionbudgets", "poddisruptionbudget"], true);
pub(super) static DEVICE_CLASS: Kind = bare("resource.k8s.io", "DeviceClass", ["deviceclasses", "deviceclass"], false);
pub(super) static RESOURCE_CLAIM: Kind =
    bare("resource.k8s.io", "ResourceClaim", ["resourceclaims", "resourceclaim"], true);
pub(super) static RESOURCE_SLICE: Kind =
    bare("resource.k8s.io", "ResourceSlice", ["resourceslices", "resourceslice"], false);
