//! Claims that wait for a pod, and volumes that are there.

use bindery_model::{Kind, ObjectKey};
use bindery_simulation::SimulatedCluster;
use serde_json::json;

use crate::case::{Case, case, claim_key, node_key, pod_key, put};

/// All cases.
pub fn cases() -> Vec<Case> {
    [local(), refused(), shared(), beside(), on_the_way()].into_iter().flatten().collect()
}

const TWO: &str = "sc local kubernetes.io/no-provisioner wffc
     node n1
     node n2
     pv v1 1Gi Available class=local on=n1 protected
     pv v2 1Gi Available class=local on=n2 protected
     pvc c#c 1Gi Pending class=local protected";

/// Local volumes on two nodes.
fn local() -> Vec<Case> {
    vec![
        case("nothing is bound before there is a pod").before(TWO).after(
            "pv v1 1Gi Available class=local on=n1 protected
             pv v2 1Gi Available class=local on=n2 protected
             pvc c#c 1Gi Pending class=local protected",
        ),
        case("the claim of a pod that is pinned to a node is bound to that node's volume")
            .before(TWO)
            .then(|cluster| put(cluster, "pod p claim=c on=n2"))
            .after(
                "pv v1 1Gi Available class=local protected
                 pv v2 1Gi Bound ->c#c class=local protected bbc
                 pvc c#c 1Gi Bound vol=v2 class=local protected bc bbc",
            )
            .pods(&["p@n2"]),
        case("the same, and all is there from the start")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 node n2
                 pv v1 1Gi Available class=local on=n1 protected
                 pv v2 1Gi Available class=local on=n2 protected
                 pvc c#c 1Gi Pending class=local protected
                 pod p claim=c on=n1",
            )
            .after(
                "pv v1 1Gi Bound ->c#c class=local protected bbc
                 pv v2 1Gi Available class=local protected
                 pvc c#c 1Gi Bound vol=v1 class=local protected bc bbc",
            )
            .pods(&["p@n1"]),
        case("two claims of a pod are bound on one node, and a node with one volume will not do")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 node n2
                 pv v1 1Gi Available class=local on=n1
                 pv v2 1Gi Available class=local on=n2
                 pv v3 1Gi Available class=local on=n2
                 pvc a#a 1Gi Pending class=local
                 pvc b#b 1Gi Pending class=local
                 pod p claim=a claim=b",
            )
            .pods(&["p@n2"]),
        case("two pods, two volumes")
            .before(TWO)
            .then(|cluster| put(cluster, "pvc d#d 1Gi Pending class=local\npod p claim=c\npod q claim=d"))
            .pods(&["p@n1", "q@n2"]),
        case("no volume where the pod must be, until one comes")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 node n2
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c on=n2",
            )
            .then(|cluster| put(cluster, "pv v2 1Gi Available class=local on=n2"))
            .pods(&["p@n2"]),
        case("no volume where the pod must be")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 node n2
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c on=n2",
            )
            .pods(&[
                "p: 0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 1 node(s) didn't \
                 match Pod's node affinity/selector. ",
            ]),
        case("a bound volume that the node cannot reach")
            .before(
                "node n1
                 node n2
                 pv v1 1Gi Bound ->c#c on=n1
                 pvc c#c 1Gi Bound vol=v1 bc
                 pod p claim=c on=n2
                 pod q claim=c",
            )
            .pods(&[
                "p: 0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) didn't match \
                 Pod's node affinity/selector. ",
                "q@n1",
            ]),
    ]
}

/// What keeps a pod from every node.
fn refused() -> Vec<Case> {
    vec![
        case("a claim is missing, and comes")
            .before(
                "node n1
                 pv v1 1Gi Available
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "pvc c#c 1Gi Pending"))
            .pods(&["p@n1"]),
        case("a claim is missing")
            .before(
                "node n1
                 pod p claim=c",
            )
            .pods(&["p: 0/1 nodes are available: persistentvolumeclaim \"c\" not found. not found"]),
        case("a claim that is bound at once is not bound, until there is a volume")
            .before(
                "node n1
                 pvc c#c 1Gi Pending
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "pv v1 1Gi Available"))
            .pods(&["p@n1"]),
        case("a claim has lost its volume")
            .before(
                "node n1
                 pvc c#c 1Gi Bound vol=gone bc
                 pod p claim=c",
            )
            .pods(&["p: 0/1 nodes are available: persistentvolumeclaim \"c\" bound to non-existent"]),
        case("a claim is being deleted, and comes again")
            .before(
                "node n1
                 pv v1 1Gi Available
                 pvc c#c 1Gi Pending fin=example.com/a deleting
                 pod p claim=c",
            )
            .then(|cluster| cluster.remove(&claim_key("c")))
            .then(|cluster| put(cluster, "pvc c#d 1Gi Pending\npv v2 1Gi Available"))
            .pods(&["p@n1"]),
        case("the claim of an ephemeral volume is awaited")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1
                 pod p eph=scratch:1Gi:local",
            )
            .pods(&["p@n1"]),
        case("the claim of an ephemeral volume is another's")
            .before(
                "node n1
                 pvc p-scratch#c 1Gi Pending
                 pod p eph=scratch",
            )
            .pods(&["p: 0/1 nodes are available: "]),
        case("a class that is missing comes")
            .before(
                "node n1
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c on=n1",
            )
            .then(|cluster| put(cluster, "sc local kubernetes.io/no-provisioner wffc"))
            .pods(&["p@n1"]),
        case("a claim with a selector that makes no sense comes again")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local sel-op=app:Near
                 pod p claim=c",
            )
            .then(|cluster| cluster.remove(&claim_key("c")))
            .then(|cluster| put(cluster, "pvc c#d 1Gi Pending class=local"))
            .pods(&["p@n1"]),
        case("a claim that makes no sense is mended")
            .before(
                "node n1
                 pv v1 1Gi Available
                 pod p claim=c",
            )
            .unseen_change(|cluster| {
                put(cluster, "pvc c#c 1Gi Pending");
                cluster.edit(&claim_key("c"), json!({"spec": {"resources": "all"}}));
            })
            .then(|cluster| put(cluster, "pvc c#c 1Gi Pending"))
            .pods(&["p@n1"]),
    ]
}

/// Claims and volumes that several pods want.
fn shared() -> Vec<Case> {
    vec![
        case("a claim for one pod only, and two pods")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1 modes=RWOP
                 pvc c#c 1Gi Pending class=local modes=RWOP
                 pod p claim=c created=2026-01-01T00:00:00Z
                 pod q claim=c created=2026-01-01T00:00:01Z",
            )
            .pods(&["p@n1", "q: 0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with"]),
        case("a claim for one pod only, and the first goes")
            .before(
                "node n1
                 pv v1 1Gi Bound ->c#c modes=RWOP
                 pvc c#c 1Gi Bound vol=v1 bc modes=RWOP
                 pod p claim=c node=n1
                 pod q claim=c",
            )
            .then(|cluster| cluster.remove(&pod_key("p")))
            .pods(&["q@n1"]),
        case("a claim for one pod only, and the first is done")
            .before(
                "node n1
                 pv v1 1Gi Bound ->c#c modes=RWOP
                 pvc c#c 1Gi Bound vol=v1 bc modes=RWOP
                 pod p claim=c node=n1
                 pod q claim=c",
            )
            .then(|cluster| cluster.edit(&pod_key("p"), json!({"status": {"phase": "Failed"}})))
            .pods(&["p@n1", "q@n1"]),
        case("two pods share a claim")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 node n2
                 pv v1 1Gi Available class=local on=n2
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c
                 pod q claim=c",
            )
            .pods(&["p@n2", "q@n2"]),
        case("one volume and two claims")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local
                 pvc d#d 1Gi Pending class=local
                 pod p claim=c created=2026-01-01T00:00:00Z
                 pod q claim=d created=2026-01-01T00:00:01Z",
            )
            .pods(&[
                "p@n1",
                "q: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. ",
            ]),
    ]
}

/// The tests of volumes beside binding.
fn beside() -> Vec<Case> {
    vec![
        case("a volume of another zone, until there is a node of its zone")
            .before(
                "node n1 label=topology.kubernetes.io/zone:a
                 pv v1 1Gi Bound ->c#c label=topology.kubernetes.io/zone:b
                 pvc c#c 1Gi Bound vol=v1 bc
                 pod p claim=c",
            )
            .then(|cluster| put(cluster, "node n2 label=topology.kubernetes.io/zone:b"))
            .pods(&["p@n2"]),
        case("a volume of another zone")
            .before(
                "node n1 label=topology.kubernetes.io/zone:a
                 pv v1 1Gi Bound ->c#c label=topology.kubernetes.io/zone:b
                 pvc c#c 1Gi Bound vol=v1 bc
                 pod p claim=c",
            )
            .pods(&["p: 0/1 nodes are available: 1 node(s) had no available volume zone. "]),
        full("a node has as many volumes as it can")
            .pods(&["p: 0/1 nodes are available: 1 node(s) exceed max volume count. ", "q@n1"]),
        full("a node has as many volumes as it can, and one goes")
            .then(|cluster| cluster.remove(&pod_key("q")))
            .pods(&["p@n1"]),
        full("a node has as many volumes as it can, and then it can have more")
            .then(|cluster| cluster.put(Kind::CsiNode, csi_node(2)))
            .pods(&["p@n1", "q@n1"]),
        case("no storage is left, until it is said that there is")
            .before(
                "sc make example.com wffc
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .unseen_change(with_capacity)
            .then(|cluster| {
                let capacity = json!({
                    "metadata": {"namespace": "default", "name": "room", "uid": "room"},
                    "storageClassName": "make", "capacity": "5Gi", "nodeTopology": {},
                });
                cluster.put(Kind::Capacity, capacity);
            })
            .pods(&["p>n1"]),
        case("no storage is left")
            .before(
                "sc make example.com wffc
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .unseen_change(with_capacity)
            .pods(&["p: 0/1 nodes are available: 1 node(s) did not have enough free storage. "]),
    ]
}

/// The driver says how much storage there is.
fn with_capacity(cluster: &mut SimulatedCluster) {
    let driver = json!({"metadata": {"name": "example.com", "uid": "driver"}, "spec": {"storageCapacity": true}});
    cluster.put(Kind::CsiDriver, driver);
}

fn csi_node(count: i32) -> serde_json::Value {
    let driver = json!({"name": "example.com", "nodeID": "n1", "allocatable": {"count": count}});
    json!({"metadata": {"name": "n1", "uid": "csi-n1"}, "spec": {"drivers": [driver]}})
}

/// A node that can have one volume, and has it.
fn full(name: &'static str) -> Case {
    let case = case(name).before(
        "node n1
         pv v1 1Gi Bound ->c#c
         pv v2 1Gi Bound ->d#d
         pvc c#c 1Gi Bound vol=v1 bc
         pvc d#d 1Gi Bound vol=v2 bc
         pod p claim=c
         pod q claim=d node=n1",
    );
    case.unseen_change(|cluster| {
        cluster.put(Kind::CsiNode, csi_node(1));
        for name in ["v1", "v2"] {
            let source = json!({"driver": "example.com", "volumeHandle": name});
            cluster.edit(&ObjectKey::volume(name), json!({"spec": {"csi": source}}));
        }
    })
}

/// What happens between two steps: the binder does not answer for a while.
fn on_the_way() -> Vec<Case> {
    vec![
        case("a volume is reserved, and its node goes: it is waited for")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n2
                 pv v1 1Gi Available ->c#c class=local on=n1 bbc
                 pv v2 1Gi Available class=local on=n2
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c nominated=n1",
            )
            .then(|cluster| put(cluster, "node n1"))
            .pods(&["p@n1"]),
        case("a node is full when its volume is bound")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1 cpu=1
                 pv v1 1Gi Bound ->c#c class=local on=n1 bbc
                 pvc c#c 1Gi Bound vol=v1 class=local bc bbc
                 pod p claim=c cpu=1 nominated=n1
                 pod q cpu=1 node=n1",
            )
            .then(|cluster| cluster.remove(&pod_key("q")))
            .pods(&["p@n1"]),
        case("a node is meant that is gone")
            .before(
                "node n2
                 pod p nominated=n1",
            )
            .then(|cluster| cluster.remove(&node_key("n1")))
            .pods(&["p@n2"]),
    ]
}
