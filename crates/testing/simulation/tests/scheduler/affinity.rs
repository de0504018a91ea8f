//! Pods that must or must not be near each other.

use bindery_simulation::SimulatedCluster;
use serde_json::json;

use crate::case::{Case, case, node_key, pod_key, put};

/// All cases.
pub fn cases() -> Vec<Case> {
    [near(), apart(), spread(), counted()].into_iter().flatten().collect()
}

fn near() -> Vec<Case> {
    vec![
        case("near another")
            .before(
                "node n1
                 node n2
                 pod a label=app:db node=n2
                 pod b near=app:db",
            )
            .pods(&["a@n2", "b@n2"]),
        case("in the zone of another, on the node that has room")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 node n3 label=zone:b
                 pod a label=app:db cpu=1 node=n2
                 pod b near=app:db@zone cpu=1",
            )
            .pods(&["a@n2", "b@n3"]),
        case("near nobody, until somebody comes")
            .before(
                "node n1
                 node n2
                 pod b near=app:db",
            )
            .then(|cluster| put(cluster, "pod a label=app:db node=n2"))
            .pods(&["a@n2", "b@n2"]),
        case("near nobody")
            .before(
                "node n1
                 pod b near=app:db",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules. "]),
        case("the first of those that want to be near each other goes anywhere, the others follow")
            .before(
                "node n1
                 node n2
                 node n3
                 pod a label=app:db near=app:db created=2026-01-01T00:00:00Z
                 pod b label=app:db near=app:db created=2026-01-01T00:00:01Z
                 pod c label=app:db near=app:db created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n1", "c@n1"]),
        case("the first goes only where the label is")
            .before(
                "node n1
                 node n2 label=zone:a
                 pod a label=app:db near=app:db@zone",
            )
            .pods(&["a@n2"]),
        case("a pod of another namespace is not meant")
            .before(
                "node n1
                 pod other/a label=app:db node=n1
                 pod b near=app:db",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules. ", "other/a@n1"]),
        case("a pod gets the label that another wants to be near to")
            .before(
                "node n1
                 node n2
                 pod a node=n2
                 pod b near=app:db",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"metadata": {"labels": {"app": "db"}}})))
            .pods(&["a@n2", "b@n2"]),
        case("a node gets the label by which a pod must be near")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b near=app:db@zone",
            )
            .then(|cluster| cluster.edit(&node_key("n1"), json!({"metadata": {"labels": {"zone": "a"}}})))
            .pods(&["a@n1", "b@n1"]),
    ]
}

fn apart() -> Vec<Case> {
    vec![
        case("not near another")
            .before(
                "node n1
                 node n2
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .pods(&["a@n1", "b@n2"]),
        case("not near another, and there is nowhere else")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .pods(&["a@n1", "b: 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. "]),
        case("another wants nobody near, be it that this one does not mind")
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
        case("a pod that is meant for a node keeps others away from it")
            .before(
                "node n1
                 pod a apart=app:web nominated=n1 scheduler=other
                 pod b label=app:web",
            )
            .pods(&["a>n1", "b: 0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. "]),
        case("each on a node of its own, and one too many")
            .before(
                "node n1
                 node n2
                 pod a label=app:db apart=app:db created=2026-01-01T00:00:00Z
                 pod b label=app:db apart=app:db created=2026-01-01T00:00:01Z
                 pod c label=app:db apart=app:db created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n2", "c: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "]),
        case("in a zone of its own")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:a
                 node n3 label=zone:b
                 pod a label=app:db node=n1
                 pod b apart=app:db@zone",
            )
            .pods(&["a@n1", "b@n3"]),
        case("the one that must not be near goes")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("the one that must not be near loses its label")
            .before(
                "node n1
                 pod a label=app:db node=n1
                 pod b apart=app:db",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"metadata": {"labels": {"app": null}}})))
            .pods(&["a@n1", "b@n1"]),
        case("the one that wanted nobody near goes")
            .before(
                "node n1
                 pod a apart=app:web node=n1
                 pod b label=app:web",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
    ]
}

/// Not more of a kind in one place than in another.
fn spread() -> Vec<Case> {
    vec![
        case("where there are fewest")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1",
            )
            .pods(&["a@n1", "b@n2"]),
        case("one after the other, over zones and then over nodes")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:a
                 node n3 label=zone:b
                 pod a label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:00Z
                 pod b label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:01Z
                 pod c label=app:db spread=app:db@zone:1 spread=app:db:1 created=2026-01-01T00:00:02Z",
            )
            .pods(&["a@n1", "b@n3", "c@n2"]),
        case("the place with fewest has no room, and others would have too many")
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
        case("two more than elsewhere may be")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:2 cpu=2",
            )
            .pods(&["a@n1", "b@n1"]),
        case("a node without the label is no place")
            .before(
                "node n1
                 pod b label=app:db spread=app:db@zone:1",
            )
            .pods(&["b: 0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). "]),
        case("one comes elsewhere, and the scales are even again")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b cpu=1
                 pod a label=app:db node=n1
                 pod b label=app:db spread=app:db@zone:1 cpu=2",
            )
            .then(|cluster| put(cluster, "pod c label=app:db node=n2"))
            .pods(&["a@n1", "b@n1", "c@n2"]),
        case("one that is there is deleted: it counts no more")
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

/// Two zones, of which one has a pod already; the other is not wanted.
const UNWANTED: &str = "node n1 label=zone:a label=disk:ssd
                        node n2 label=zone:b
                        pod a label=app:db node=n1
                        pod b label=app:db sel=disk:ssd gate=wait";

/// Two zones, of which one has a pod already; the other is tainted.
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

/// Has the pod that is held back spread over zones, with something more said of that, and lets it go.
fn release(cluster: &mut SimulatedCluster, more: serde_json::Value) {
    let mut spread = json!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "db"}},
    });
    spread.as_object_mut().expect("a map").extend(more.as_object().cloned().expect("a map"));
    cluster.edit(&pod_key("b"), json!({"spec": {"topologySpreadConstraints": [spread], "schedulingGates": null}}));
}

/// Which nodes and pods count when pods are spread.
fn counted() -> Vec<Case> {
    vec![
        case("a node that is not wanted does not count")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({})))
            .pods(TOGETHER),
        case("a node that is not wanted counts where it is to")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({"nodeAffinityPolicy": "Ignore"})))
            .pods(CROWDED_OR_UNWANTED),
        case("a tainted node counts")
            .before(TAINTED)
            .then(|cluster| release(cluster, json!({})))
            .pods(CROWDED_OR_TAINTED),
        case("a tainted node does not count where it is not to")
            .before(TAINTED)
            .then(|cluster| release(cluster, json!({"nodeTaintsPolicy": "Honor"})))
            .pods(TOGETHER),
        case("where there are too few places, one that is not there has no pods")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({"minDomains": 2})))
            .pods(CROWDED_OR_UNWANTED),
        case("who is selected by nothing is not counted")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({"labelSelector": {}, "minDomains": 2})))
            .pods(TOGETHER),
        case("only those count that are alike in a label of the pod's own")
            .before(UNWANTED)
            .then(|cluster| {
                cluster.edit(&pod_key("b"), json!({"metadata": {"labels": {"version": "2"}}}));
                release(cluster, json!({"matchLabelKeys": ["version"], "minDomains": 2}));
            })
            .pods(TOGETHER),
        case("a label that the pod has not does not matter")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({"matchLabelKeys": ["version"], "minDomains": 2})))
            .pods(CROWDED_OR_UNWANTED),
        case("what is but a wish does not bind")
            .before(UNWANTED)
            .then(|cluster| release(cluster, json!({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2})))
            .pods(TOGETHER),
    ]
}
