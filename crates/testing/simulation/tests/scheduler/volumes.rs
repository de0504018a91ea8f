//! Claims that wait for their first consumer, and existing volumes.

use bindery_model::{Kind, ObjectKey};
use bindery_simulation::SimulatedCluster;
use serde_json::json;

use crate::case::{Case, case, claim_key, node_key, pod_key, provision, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [local(), obstacles(), shared(), other_checks(), without_binder()].into_iter().flatten().collect()
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
        case("nothing is bound before a pod exists").before(TWO).after(
            "pv v1 1Gi Available class=local on=n1 protected
             pv v2 1Gi Available class=local on=n2 protected
             pvc c#c 1Gi Pending class=local protected",
        ),
        case("the claim of a pod with node affinity is bound to a volume of that node")
            .before(TWO)
            .then(|cluster| put(cluster, "pod p claim=c on=n2"))
            .after(
                "pv v1 1Gi Available class=local protected
                 pv v2 1Gi Bound ->c#c class=local protected bbc
                 pvc c#c 1Gi Bound vol=v2 class=local protected bc bbc",
            )
            .pods(&["p@n2"]),
        case("the same with all objects from the start")
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
        case("two claims of a pod need a node with two volumes")
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
        case("no volume on the required node, until one is created")
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
        case("no volume on the required node")
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
        case("a bound volume that is not reachable from the node")
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

/// Obstacles on every node.
fn obstacles() -> Vec<Case> {
    vec![
        case("a claim is missing, then created")
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
        case("a claim with immediate binding is unbound, until a volume exists")
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
        case("a claim is being deleted, then created again")
            .before(
                "node n1
                 pv v1 1Gi Available
                 pvc c#c 1Gi Pending fin=example.com/a deleting
                 pod p claim=c",
            )
            .then(|cluster| cluster.remove(&claim_key("c")))
            .then(|cluster| put(cluster, "pvc c#d 1Gi Pending\npv v2 1Gi Available"))
            .pods(&["p@n1"]),
        case("the claim of an ephemeral volume does not exist yet")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1
                 pod p eph=scratch:1Gi:local",
            )
            .pods(&["p@n1"]),
        case("the claim of an ephemeral volume is deleted while its pod is nominated to a node")
            .before(
                "sc make example.com wffc
                 node n1
                 pod p eph=scratch:1Gi:make",
            )
            .then(|cluster| cluster.remove(&claim_key("p-scratch")))
            .then(provision)
            .pods(&["p@n1"]),
        case("the claim of an ephemeral volume belongs to another pod")
            .before(
                "node n1
                 pvc p-scratch#c 1Gi Pending
                 pod p eph=scratch",
            )
            .pods(&["p: 0/1 nodes are available: "]),
        case("a missing class is created")
            .before(
                "node n1
                 pv v1 1Gi Available class=local on=n1
                 pvc c#c 1Gi Pending class=local
                 pod p claim=c on=n1",
            )
            .then(|cluster| put(cluster, "sc local kubernetes.io/no-provisioner wffc"))
            .pods(&["p@n1"]),
        case("a claim with an invalid selector is replaced")
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
        case("a malformed claim is fixed")
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

/// Claims and volumes that several pods need.
fn shared() -> Vec<Case> {
    vec![
        case("a ReadWriteOncePod claim and two pods")
            .before(
                "sc local kubernetes.io/no-provisioner wffc
                 node n1
                 pv v1 1Gi Available class=local on=n1 modes=RWOP
                 pvc c#c 1Gi Pending class=local modes=RWOP
                 pod p claim=c created=2026-01-01T00:00:00Z
                 pod q claim=c created=2026-01-01T00:00:01Z",
            )
            .pods(&["p@n1", "q: 0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with"]),
        case("a ReadWriteOncePod claim, and the first pod is deleted")
            .before(
                "node n1
                 pv v1 1Gi Bound ->c#c modes=RWOP
                 pvc c#c 1Gi Bound vol=v1 bc modes=RWOP
                 pod p claim=c node=n1
                 pod q claim=c",
            )
            .then(|cluster| cluster.remove(&pod_key("p")))
            .pods(&["q@n1"]),
        case("a ReadWriteOncePod claim, and the first pod completes")
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

/// Volume checks other than binding.
fn other_checks() -> Vec<Case> {
    vec![
        case("a volume of another zone, until a node of its zone exists")
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
        full("a node is at its volume limit")
            .pods(&["p: 0/1 nodes are available: 1 node(s) exceed max volume count. ", "q@n1"]),
        full("a node is at its volume limit, and a pod is deleted")
            .then(|cluster| cluster.remove(&pod_key("q")))
            .pods(&["p@n1"]),
        full("a node is at its volume limit, and the limit is raised")
            .then(|cluster| cluster.put(Kind::CsiNode, csi_node(2)))
            .pods(&["p@n1", "q@n1"]),
        case("no storage capacity, until it is published")
            .before(
                "sc make example.com wffc
                 node n1
                 pvc c#c 1Gi Pending class=make
                 pod p claim=c",
            )
            .unseen_change(with_capacity)
            .then(|cluster| {
                let capacity = json!({
                    "metadata": {"namespace": "default", "name": "capacity", "uid": "capacity"},
                    "storageClassName": "make", "capacity": "5Gi", "nodeTopology": {},
                });
                cluster.put(Kind::Capacity, capacity);
            })
            .pods(&["p>n1"]),
        case("no storage capacity")
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

/// A driver that publishes storage capacity.
fn with_capacity(cluster: &mut SimulatedCluster) {
    let driver = json!({"metadata": {"name": "example.com", "uid": "driver"}, "spec": {"storageCapacity": true}});
    cluster.put(Kind::CsiDriver, driver);
}

fn csi_node(count: i32) -> serde_json::Value {
    let driver = json!({"name": "example.com", "nodeID": "n1", "allocatable": {"count": count}});
    json!({"metadata": {"name": "n1", "uid": "csi-n1"}, "spec": {"drivers": [driver]}})
}

/// A node with a limit of one volume, which is used.
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

/// Changes while the binder is not running.
fn without_binder() -> Vec<Case> {
    vec![
        case("a volume is reserved, and its node is deleted: the pod waits for it")
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
        case("a node is full once its volume is bound")
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
        case("the nominated node does not exist")
            .before(
                "node n2
                 pod p nominated=n1",
            )
            .then(|cluster| cluster.remove(&node_key("n1")))
            .pods(&["p@n2"]),
    ]
}
