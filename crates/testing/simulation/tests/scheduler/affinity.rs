//! Pod affinity, pod anti-affinity and topology spread constraints.

use bindery_simulation::SimulatedCluster;
use serde_json::json;

use crate::case::{Case, case, node_key, pod_key, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [affinity(), anti_affinity(), spread(), counted()].into_iter().flatten().collect()
}

fn affinity() -> Vec<Case> {
    vec![
        case("near another")
            .before(
                "node n1
                 node n2
                 pod a label=app:db node=n2
                 pod b near=app:db",
            )
            .pods(&["a@n2", "b@n2"]),
        case("affinity by zone, on the node with capacity")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 node n3 label=zone:b
                 pod a label=app:db cpu=1 node=n2
                 pod b near=app:db@zone cpu=1",
            )
            .pods(&["a@n2", "b@n3"]),
        case("affinity without a matching pod, until one is created")
            .before(
                "node n1
                 node n2
                 pod b near=app:db",
            )
            .then(|cluster| put(cluster, "pod a label=app:db node=n2"))
            .pods(&["a@n2", "b@n2"]),
        case("affinity without a matching pod")
            .before(
                "node n1
                 pod b near=app:db",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules. "]),
        case("the first pod of a group with affinity to itself is scheduled anywhere, the others follow")
            .before(
                "node n1
                 node n2
                 node n3
                 pod a label=app:db near=app:db created=2026-01-01T00:00:00Z
                 pod b label=app:db near=app:db created=2026-01-01T00:00:01Z
                 pod c label=app:db near=app:db created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n1", "c@n1"]),
        case("the first pod is scheduled only on a node with the topology label")
            .before(
                "node n1
                 node n2 label=zone:a
                 pod a label=app:db near=app:db@zone",
            )
            .pods(&["a@n2"]),
        case("a pod of another namespace does not match")
            .before(
                "node n1
                 pod other/a label=app:db node=n1
                 pod b near=app:db",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules. ", "other/a@n1"]),
        case("a pod gets the label that the affinity selects")
            .before(
                "node n1
                 node n2
                 pod a node=n2
                 pod b near=app:db",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"metadata": {"labels": {"app": "db"}}})))
            .pods(&["a@n2", "b@n2"]),
        case("a node gets the topology label")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b near=app:db@zone",
            )
            .then(|cluster| cluster.edit(&node_key("n1"), json!({"metadata": {"labels": {"zone": "a"}}})))
            .pods(&["a@n1", "b@n1"]),
    ]
}

fn anti_affinity() -> Vec<Case> {
    vec![
        case("anti-affinity")
            .before(
                "node n1
                 node n2
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .pods(&["a@n1", "b@n2"]),
        case("anti-affinity without another node")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .pods(&["a@n1", "b: 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. "]),
        case("anti-affinity of an existing pod")
            .before(
                "node n1
                 node n2
                 pod a apart=app:web node=n1
                 pod b label=app:web
                 pod c label=app:web on=n1",
            )
            .pods(&[
                "a@n1",
                "b@n2",
                "c: 0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't satisfy \
                 existing pods anti-affinity rules. ",
            ]),
        case("anti-affinity of a pod with a nominated node")
            .before(
                "node n1
                 pod a apart=app:web nominated=n1 scheduler=other
                 pod b label=app:web",
            )
            .pods(&["a>n1", "b: 0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. "]),
        case("anti-affinity to itself, with one pod too many")
            .before(
                "node n1
                 node n2
                 pod a label=app:db apart=app:db created=2026-01-01T00:00:00Z
                 pod b label=app:db apart=app:db created=2026-01-01T00:00:01Z
                 pod c label=app:db apart=app:db created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n2", "c: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "]),
        case("anti-affinity by zone")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:a
                 node n3 label=zone:b
                 pod a label=app:db node=n1
                 pod b apart=app:db@zone",
            )
            .pods(&["a@n1", "b@n3"]),
        case("the conflicting pod is deleted")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("the conflicting pod loses its label")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"metadata": {"labels": {"app": null}}})))
            .pods(&["a@n1", "b@n1"]),
        case("the pod with anti-affinity is deleted")
            .before(
                "node n1
                 pod a apart=app:web node=n1
                 pod b label=app:web",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
    ]
}

/// Topology spread constraints.
fn spread() -> Vec<Case> {
    vec![
        case("the zone with the fewest pods")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1",
            )
            .pods(&["a@n1", "b@n2"]),
        case("spread over zones and over nodes")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:a
                 node n3 label=zone:b
                 pod a label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:00Z
                 pod b label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:01Z
                 pod c label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n3", "c@n2"]),
        case("the zone with the fewest pods has no capacity, and the others exceed maxSkew")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1 cpu=2",
            )
            .pods(&[
                "a@n1",
                "b: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints. ",
            ]),
        case("maxSkew 2")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:2 cpu=2",
            )
            .pods(&["a@n1", "b@n1"]),
        case("a node without the topology label")
            .before(
                "node n1
                 pod b label=app:db spread=app:db@zone:1",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). "]),
        case("a pod in another zone raises the minimum")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1 cpu=2",
            )
            .then(|cluster| put(cluster, "pod c label=app:db node=n2"))
            .pods(&["a@n1", "b@n1", "c@n2"]),
        case("a pod that is being deleted does not count")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1 cpu=2",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})))
            .pods(&["a@n1", "b@n1"]),
    ]
}

/// Two zones: one has a pod, the other does not match the node selector.
const UNWANTED: &str = "node n1 label=zone:a label=disk:ssd
                        node n2 label=zone:b
                        pod a label=app:db node=n1
                        pod b label=app:db sel=disk:ssd gate=wait";

/// Two zones: one has a pod, the other is tainted.
const TAINTED: &str = "node n1 label=zone:a
                       node n2 label=zone:b taint=gpu:yes:NoSchedule
                       pod a label=app:db node=n1
                       pod b label=app:db gate=wait";

const CROWDED_OR_UNWANTED: &[&str] = &[
    "a@n1",
    "b: 0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match pod topology spread \
     constraints. ",
];

const CROWDED_OR_TAINTED: &[&str] = &[
    "a@n1",
    "b: 0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) had untolerated taint(s). ",
];

const TOGETHER: &[&str] = &["a@n1", "b@n1"];

/// Adds a spread constraint with further fields to the gated pod, and removes its gate.
fn ungate(cluster: &mut SimulatedCluster, more: serde_json::Value) {
    let mut spread = json!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "db"}},
    });
    spread.as_object_mut().expect("a map").extend(more.as_object().cloned().expect("a map"));
    cluster.edit(&pod_key("b"), json!({"spec": {"topologySpreadConstraints": [spread], "schedulingGates": null}}));
}

/// Which nodes and pods count for topology spread.
fn counted() -> Vec<Case> {
    vec![
        case("a node that does not match the selector does not count")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({})))
            .pods(TOGETHER),
        case("a node that does not match the selector counts with nodeAffinityPolicy Ignore")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({"nodeAffinityPolicy": "Ignore"})))
            .pods(CROWDED_OR_UNWANTED),
        case("a tainted node counts")
            .before(TAINTED)
            .then(|cluster| ungate(cluster, json!({})))
            .pods(CROWDED_OR_TAINTED),
        case("a tainted node does not count with nodeTaintsPolicy Honor")
            .before(TAINTED)
            .then(|cluster| ungate(cluster, json!({"nodeTaintsPolicy": "Honor"})))
            .pods(TOGETHER),
        case("with fewer than minDomains zones, the minimum is zero")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({"minDomains": 2})))
            .pods(CROWDED_OR_UNWANTED),
        case("an empty selector counts no pods")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({"labelSelector": {}, "minDomains": 2})))
            .pods(TOGETHER),
        case("matchLabelKeys restricts the counted pods")
            .before(UNWANTED)
            .then(|cluster| {
                cluster.edit(&pod_key("b"), json!({"metadata": {"labels": {"version": "2"}}}));
                ungate(cluster, json!({"matchLabelKeys": ["version"], "minDomains": 2}));
            })
            .pods(TOGETHER),
        case("matchLabelKeys ignores labels that the pod does not have")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({"matchLabelKeys": ["version"], "minDomains": 2})))
            .pods(CROWDED_OR_UNWANTED),
        case("ScheduleAnyway does not restrict")
            .before(UNWANTED)
            .then(|cluster| ungate(cluster, json!({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2})))
            .pods(TOGETHER),
    ]
}
