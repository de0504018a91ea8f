//! Claims whose volumes are provisioned for the node of their pod.

use serde_json::json;

use crate::case::{Case, SELECTED_NODE, case, claim_key, fail, node_key, pod_key, provision, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [provisioned(), failed(), deletions(), reservations(), invalid_classes()].into_iter().flatten().collect()
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

fn provisioned() -> Vec<Case> {
    vec![
        case("a node is selected, and the pod waits for the volume")
            .before(ONE)
            .after("pvc c#c 1Gi Pending class=make protected node=n1 sp=example.com")
            .pods(&["p>n1"]),
        case("a volume is provisioned")
            .before(ONE)
            .then(provision)
            .after(
                "pv made-c-n1 1Gi Bound ->c#c class=make policy=Delete source=csi:example.com by=example.com protected
                 pvc c#c 1Gi Bound vol=made-c-n1 class=make protected node=n1 sp=example.com bc bbc",
            )
            .pods(&["p@n1"]),
        case("two claims, one of them with a matching volume")
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
        case("resources are reserved for a pod whose volume is being provisioned")
            .before(
                "sc make example.com wffc
                 node n1 cpu=1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c cpu=1",
            )
            .then(|cluster| put(cluster, "pod q cpu=1"))
            .then(provision)
            .pods(&["p@n1", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        case("an ephemeral volume is provisioned")
            .before(
                "sc make example.com wffc
                 node n1
                 pod p eph=scratch:1Gi:make",
            )
            .then(provision)
            .pods(&["p@n1"]),
        case("a claim with a selected node before its pod exists")
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
        case("provisioning fails on the first node: the other is selected")
            .before(TWO)
            .then(fail)
            .after("pvc c#c 1Gi Pending class=make protected node=n2 sp=example.com")
            .pods(&["p>n2"]),
        case("and provisioning succeeds there")
            .before(TWO)
            .then(fail)
            .then(provision)
            .after(
                "pv made-c-n2 1Gi Bound ->c#c class=make policy=Delete source=csi:example.com by=example.com protected
                 pvc c#c 1Gi Bound vol=made-c-n2 class=make protected node=n2 sp=example.com bc bbc",
            )
            .pods(&["p@n2"]),
        case("provisioning fails on both nodes: the first is selected again")
            .before(TWO)
            .then(fail)
            .then(fail)
            .then(provision)
            .pods(&["p@n1"]),
        case("provisioning fails on the only node: it is retried after a back-off")
            .before(ONE)
            .then(fail)
            .after("pvc c#c 1Gi Pending class=make protected node=n1 sp=example.com")
            .pods(&["p>n1"]),
        case("provisioning fails twice on the only node, then succeeds")
            .before(ONE)
            .then(fail)
            .then(fail)
            .then(provision)
            .pods(&["p@n1"]),
        case("two claims, and provisioning of one fails: the other determines the node")
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
        case("two claims, and provisioning of both fails")
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

/// Pods, claims and nodes that are deleted during provisioning.
fn deletions() -> Vec<Case> {
    vec![
        case("the pod is deleted: the claim keeps its node, and another pod follows it")
            .before(TWO)
            .then(|cluster| cluster.remove(&pod_key("p")))
            .then(|cluster| put(cluster, "pod q claim=c"))
            .then(provision)
            .pods(&["q@n1"]),
        case("the pod completes before it is bound: others get its resources")
            .before(
                "sc make example.com wffc
                 node n1 cpu=1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c cpu=1",
            )
            .then(|cluster| put(cluster, "pod q cpu=1"))
            .then(|cluster| cluster.edit(&pod_key("p"), json!({"status": {"phase": "Failed"}})))
            .pods(&["p>n1", "q@n1"]),
        case("the pod is being deleted, and gets no node")
            .before(ONE)
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .then(provision)
            .pods(&["p>n1"]),
        case("the pod is being deleted before it is bound: others get its resources")
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
        case("the node is deleted, and the provisioner unselects it: the other is selected")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .then(fail)
            .then(provision)
            .pods(&["p@n2"]),
        case("the node is deleted and created again")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .then(|cluster| put(cluster, "node n1"))
            .then(provision)
            .pods(&["p@n1"]),
        case("the node is deleted, and stays selected")
            .before(TWO)
            .then(|cluster| cluster.remove(&node_key("n1")))
            .pods(&["p: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. "]),
        case("the node is cordoned during provisioning")
            .before(ONE)
            .then(|cluster| put(cluster, "node n1 cordoned"))
            .then(provision)
            .pods(&["p: 0/1 nodes are available: 1 node(s) were unschedulable. "]),
        case("the claim is deleted and created again")
            .before(ONE)
            .then(|cluster| cluster.remove(&claim_key("c")))
            .then(|cluster| put(cluster, "pvc c#d 1Gi Pending class=make"))
            .then(provision)
            .pods(&["p@n1"]),
        case("a ReadWriteOncePod claim and two pods")
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

/// Resources reserved for pods without a nominated node by the selected node of their claims.
fn reservations() -> Vec<Case> {
    let reserved = |name| {
        case(name).before(
            "sc make example.com wffc
             node n1 cpu=1
             pvc c#c 1Gi Pending class=make node=n1
             pod p claim=c cpu=1 scheduler=other
             pod q cpu=1",
        )
    };
    vec![
        reserved("a pod whose volume is being provisioned reserves resources")
            .pods(&["p: ", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        reserved("a pod whose provisioning fails frees its resources").then(fail).pods(&["p: ", "q@n1"]),
        case("a pod whose volume a scheduler has reserved reserves resources there")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1 cpu=1
                 pv v1 1Gi Available ->c#c class=local on=n1 bbc
                 pvc c#c 2Gi Pending class=local
                 pod p claim=c cpu=1 scheduler=other
                 pod q cpu=1",
            )
            .pods(&["p: ", "q: 0/1 nodes are available: 1 Insufficient cpu. "]),
        case("a pod whose volume a user has reserved does not")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1 cpu=1
                 pv v1 1Gi Available ->c class=local on=n1
                 pvc c#c 2Gi Pending class=local
                 pod p claim=c cpu=1 scheduler=other
                 pod q cpu=1",
            )
            .pods(&["p: ", "q@n1"]),
        reserved("a pod whose volume is being provisioned is deleted and frees its resources")
            .then(|cluster| cluster.remove(&pod_key("p")))
            .pods(&["q@n1"]),
        reserved("a pod whose volume is being provisioned is being deleted and frees its resources")
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .pods(&["p: ", "q@n1"]),
        reserved("a pod whose claim is deleted frees its resources")
            .then(|cluster| cluster.remove(&claim_key("c")))
            .pods(&["p: ", "q@n1"]),
    ]
}

/// Invalid classes.
fn invalid_classes() -> Vec<Case> {
    vec![
        case("a class without a binding mode, until it is fixed")
            .before(
                "sc make example.com no-mode
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "sc make example.com wffc"))
            .then(provision)
            .pods(&["p@n1"]),
        case("a class without a provisioner gets one")
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
