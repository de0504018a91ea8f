//! Claims for which volumes are made where their pods go.

use serde_json::json;

use crate::case::{Case, SELECTED_NODE, case, claim_key, fail, node_key, pod_key, provision, put};

/// All cases.
pub fn cases() -> Vec<Case> {
    [made(), failed(), on_the_way(), of_another(), odd()].into_iter().flatten().collect()
}

const ONE: &str = "sc make example.com wffc
     node n1
     pvc c#c 1Gi Pending class=make
     pod p claim=c";

const TWO: &str = "sc make example.com wffc
     node n1
     node n2
     pvc c#c 1Gi Pending class=make
     pod p claim=c";

fn made() -> Vec<Case> {
    vec![
        case("a node is selected, and the volume is awaited")
            .before(ONE)
            .after("pvc c#c 1Gi Pending class=make protected node=n1 sp=example.com")
            .pods(&["p>n1"]),
        case("a volume is made")
            .before(ONE)
            .then(provision)
            .after(
                "pv made-c-n1 1Gi Bound ->c#c class=make policy=Delete source=csi:example.com by=example.com protected
                 pvc c#c 1Gi Bound vol=made-c-n1 class=make protected node=n1 sp=example.com bc bbc",
            )
            .pods(&["p@n1"]),
        case("two claims, of which one has a volume")
            .before(
                "sc make example.com wffc
                 node n1
                 node n2
                 pv v2 1Gi Available class=make on=n2
                 pvc a#a 1Gi Pending class=make
                 pvc b#b 1Gi Pending class=make
                 pod p claim=a claim=b on=n2",
            )
            .then(provision)
            .pods(&["p@n2"]),
        case("room is left for a pod whose volume is being made")
            .before(
                "sc make example.com wffc
                 node n1 cpu=1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c cpu=1",
            )
            .then(|cluster| put(cluster, "pod q cpu=1"))
            .then(provision)
            .pods(&["p@n1", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        case("an ephemeral volume is made")
            .before(
                "sc make example.com wffc
                 node n1
                 pod p eph=scratch:1Gi:make",
            )
            .then(provision)
            .pods(&["p@n1"]),
        case("a claim that was sent to a node before there was a pod")
            .before(
                "sc make example.com wffc
                 node n1
                 node n2
                 pvc c#c 1Gi Pending class=make node=n2
                 pod p claim=c",
            )
            .then(provision)
            .pods(&["p@n2"]),
    ]
}

fn failed() -> Vec<Case> {
    vec![
        case("making a volume fails on the first node: it is tried on the other")
            .before(TWO)
            .then(fail)
            .after("pvc c#c 1Gi Pending class=make protected node=n2 sp=example.com")
            .pods(&["p>n2"]),
        case("and it is made there")
            .before(TWO)
            .then(fail)
            .then(provision)
            .after(
                "pv made-c-n2 1Gi Bound ->c#c class=make policy=Delete source=csi:example.com by=example.com protected
                 pvc c#c 1Gi Bound vol=made-c-n2 class=make protected node=n2 sp=example.com bc bbc",
            )
            .pods(&["p@n2"]),
        case("it fails on both: then the first is tried again")
            .before(TWO)
            .then(fail)
            .then(fail)
            .then(provision)
            .pods(&["p@n1"]),
        case("it fails on the only node: after a pause it is tried there again")
            .before(ONE)
            .then(fail)
            .after("pvc c#c 1Gi Pending class=make protected node=n1 sp=example.com")
            .pods(&["p>n1"]),
        case("it fails on the only node twice, then it is made")
            .before(ONE)
            .then(fail)
            .then(fail)
            .then(provision)
            .pods(&["p@n1"]),
        case("two claims, and making one fails: the other keeps the pod where it is")
            .before(
                "sc make example.com wffc
                 node n1
                 node n2
                 pvc a#a 1Gi Pending class=make
                 pvc b#b 1Gi Pending class=make
                 pod p claim=a claim=b",
            )
            .then(|cluster| cluster.edit(&claim_key("b"), json!({"metadata": {"annotations": {SELECTED_NODE: null}}})))
            .then(provision)
            .pods(&["p@n1"]),
        case("two claims, and making both fails")
            .before(
                "sc make example.com wffc
                 node n1
                 node n2
                 pvc a#a 1Gi Pending class=make
                 pvc b#b 1Gi Pending class=make
                 pod p claim=a claim=b",
            )
            .then(fail)
            .then(provision)
            .pods(&["p@n2"]),
    ]
}

/// Pods, claims and nodes that go while a volume is being made.
fn on_the_way() -> Vec<Case> {
    vec![
        case("the pod goes: the claim stays as it is, and another pod follows it")
            .before(TWO)
            .then(|cluster| cluster.remove(&pod_key("p")))
            .then(|cluster| put(cluster, "pod q claim=c"))
            .then(provision)
            .pods(&["q@n1"]),
        case("the pod is done before it has started: others get its room")
            .before(
                "sc make example.com wffc
                 node n1 cpu=1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c cpu=1",
            )
            .then(|cluster| put(cluster, "pod q cpu=1"))
            .then(|cluster| cluster.edit(&pod_key("p"), json!({"status": {"phase": "Failed"}})))
            .pods(&["p>n1", "q@n1"]),
        case("the pod is being deleted, and gets no node any more")
            .before(ONE)
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .then(provision)
            .pods(&["p>n1"]),
        case("the pod is being deleted before it has started: others get its room")
            .before(
                "sc make example.com wffc
                 node n1 cpu=1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c cpu=1",
            )
            .then(|cluster| put(cluster, "pod q cpu=1"))
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .pods(&["p>n1", "q@n1"]),
        case("the node goes, and the provisioner lets go of it: it is tried on the other")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .then(fail)
            .then(provision)
            .pods(&["p@n2"]),
        case("the node goes, and comes again")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .then(|cluster| put(cluster, "node n1"))
            .then(provision)
            .pods(&["p@n1"]),
        case("the node goes, and nobody lets go of it")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .pods(&["p: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. "]),
        case("the node is cordoned on the way")
            .before(ONE)
            .then(|cluster| put(cluster, "node n1 cordoned"))
            .then(provision)
            .pods(&["p: 0/1 nodes are available: 1 node(s) were unschedulable. "]),
        case("the claim goes and comes again")
            .before(ONE)
            .then(|cluster| cluster.remove(&claim_key("c")))
            .then(|cluster| put(cluster, "pvc c#d 1Gi Pending class=make"))
            .then(provision)
            .pods(&["p@n1"]),
        case("a claim for one pod only, and two pods")
            .before(
                "sc make example.com wffc
                 node n1
                 node n2
                 pvc c#c 1Gi Pending class=make modes=RWOP
                 pod p claim=c created=2026-01-01T00:00:00Z
                 pod q claim=c created=2026-01-01T00:00:01Z",
            )
            .then(|cluster| {
                provision(cluster);
                let volume = bindery_model::ObjectKey::volume("made-c-n1");
                cluster.edit(&volume, json!({"spec": {"accessModes": ["ReadWriteOncePod"]}}));
            })
            .pods(&["p@n1", "q: 0/2 nodes are available: "]),
    ]
}

/// What another scheduler's pod is meant to take, by its claim alone.
fn of_another() -> Vec<Case> {
    let meant = |name| {
        case(name).before(
            "sc make example.com wffc
             node n1 cpu=1
             pvc c#c 1Gi Pending class=make node=n1
             pod p claim=c cpu=1 scheduler=other
             pod q cpu=1",
        )
    };
    vec![
        meant("a pod whose volume is to be made on a node takes its room")
            .pods(&["p: ", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        meant("a pod whose volume cannot be made on a node gives its room back").then(fail).pods(&["p: ", "q@n1"]),
        case("a pod for whose claim a scheduler has reserved a volume takes room where that is")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1 cpu=1
                 pv v1 1Gi Available ->c#c class=local on=n1 bbc
                 pvc c#c 2Gi Pending class=local
                 pod p claim=c cpu=1 scheduler=other
                 pod q cpu=1",
            )
            .pods(&["p: ", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        case("a pod for whose claim a user keeps a volume does not")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1 cpu=1
                 pv v1 1Gi Available ->c class=local on=n1
                 pvc c#c 2Gi Pending class=local
                 pod p claim=c cpu=1 scheduler=other
                 pod q cpu=1",
            )
            .pods(&["p: ", "q@n1"]),
        meant("a pod whose volume is to be made on a node goes, and gives its room back")
            .then(|cluster| cluster.remove(&pod_key("p")))
            .pods(&["q@n1"]),
        meant("a pod whose volume is to be made on a node is deleted, and gives its room back")
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .pods(&["p: ", "q@n1"]),
        meant("a pod whose claim goes gives its room back")
            .then(|cluster| cluster.remove(&claim_key("c")))
            .pods(&["p: ", "q@n1"]),
    ]
}

/// What makes no sense.
fn odd() -> Vec<Case> {
    vec![
        case("a class that cannot say when its claims are bound, until it is mended")
            .before(
                "sc make example.com no-mode
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "sc make example.com wffc"))
            .then(provision)
            .pods(&["p@n1"]),
        case("nobody makes volumes of the class, then somebody does")
            .before(
                "sc make kubernetes.io/no-provisioner wffc
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "sc make example.com wffc"))
            .then(provision)
            .pods(&["p@n1"]),
    ]
}
