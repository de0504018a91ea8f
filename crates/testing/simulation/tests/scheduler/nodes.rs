//! Pods without volumes: filtering and scoring of nodes.

use serde_json::json;

use crate::case::{Case, case, node_key, pod_key, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [labels_and_names(), taints(), resources(), freed_resources(), scoring()].into_iter().flatten().collect()
}

/// Labels and names.
fn labels_and_names() -> Vec<Case> {
    vec![
        case("no node at all, then one comes").before("pod p").then(|cluster| put(cluster, "node n1")).pods(&["p@n1"]),
        case("no node at all").before("pod p").pods(&["p: no nodes available to schedule pods"]),
        case("a node selector")
            .before(
                "node n1 label=zone:a
                 node n2 label=zone:b
                 pod p sel=zone:b",
            )
            .pods(&["p@n2"]),
        case("a node selector that no node matches, until one gets the label")
            .before(
                "node n1 label=zone:a
                 pod p sel=zone:b",
            )
            .then(|cluster| cluster.edit(&node_key("n1"), json!({"metadata": {"labels": {"zone": "b"}}})))
            .pods(&["p@n1"]),
        case("a node selector that no node matches")
            .before(
                "node n1 label=zone:a
                 pod p sel=zone:b",
            )
            .pods(&["p: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "]),
        case("node affinity")
            .before(
                "node n1
                 node n2
                 node n3
                 pod p on=n2",
            )
            .pods(&["p@n2"]),
        case("preferred affinity decides between suitable nodes")
            .before(
                "node n1
                 node n2
                 node n3
                 pod p likes=n3:10 likes=n2:90",
            )
            .pods(&["p@n2"]),
        case("required affinity takes precedence over preferred affinity")
            .before(
                "node n1
                 node n2
                 pod p on=n1 likes=n2:100",
            )
            .pods(&["p@n1"]),
    ]
}

/// Taints and cordons.
fn taints() -> Vec<Case> {
    vec![
        case("a cordoned node, until it is uncordoned")
            .before(
                "node n1 cordoned
                 pod p",
            )
            .then(|cluster| put(cluster, "node n1"))
            .pods(&["p@n1"]),
        case("a cordoned node")
            .before(
                "node n1 cordoned
                 pod p",
            )
            .pods(&["p: 0/1 nodes are available: 1 node(s) were unschedulable. "]),
        case("a cordoned node takes a pod that tolerates it")
            .before(
                "node n1 cordoned taint=node.kubernetes.io/unschedulable::NoSchedule
                 pod p tolerates=node.kubernetes.io/unschedulable",
            )
            .pods(&["p@n1"]),
        case("untolerated taints")
            .before(
                "node n1 taint=gpu:yes:NoSchedule
                 node n2 taint=gpu:yes:NoExecute
                 pod p",
            )
            .pods(&["p: 0/2 nodes are available: 2 node(s) had untolerated taint(s). "]),
        case("a taint is tolerated")
            .before(
                "node n1 taint=other:yes:NoSchedule
                 node n2 taint=gpu:yes:NoSchedule
                 pod p tolerates=gpu",
            )
            .pods(&["p@n2"]),
        case("PreferNoSchedule matters only if there is another node")
            .before(
                "node n1 taint=old:yes:PreferNoSchedule
                 node n2
                 pod p
                 pod q on=n1",
            )
            .pods(&["p@n2", "q@n1"]),
        case("a taint is removed")
            .before(
                "node n1 taint=gpu:yes:NoSchedule
                 pod p",
            )
            .then(|cluster| put(cluster, "node n1"))
            .pods(&["p@n1"]),
    ]
}

/// Resources and ports.
fn resources() -> Vec<Case> {
    vec![
        case("ports used by another pod, or by one with a nominated node")
            .before(
                "node n1
                 node n2
                 node n3
                 pod a port=80 node=n1
                 pod b port=80 nominated=n2 scheduler=other
                 pod c port=80
                 pod d port=81 on=n1
                 pod e port=80 on=n1",
            )
            .pods(&[
                "a@n1",
                "b>n2",
                "c@n3",
                "d@n1",
                "e: 0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't \
                 match Pod's node affinity/selector. ",
            ]),
        case("cpu and memory that other pods use, or that no node has")
            .before(
                "node n1 cpu=2 memory=4Gi
                 pod a cpu=1500m memory=3Gi node=n1
                 pod b cpu=1 memory=2Gi
                 pod c cpu=3
                 pod d cpu=500m memory=1Gi",
            )
            .pods(&[
                "a@n1",
                "b: 0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. no new claims to deallocate, \
                 preemption: 0/1 nodes are available: 1 No preemption victims",
                "c: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are \
                 available: 1 Preemption is not helpful",
                "d@n1",
            ]),
        case("ephemeral storage and extended resources")
            .before(
                "node n1 other=ephemeral-storage:10Gi
                 node n2 other=example.com/gpu:2
                 pod a other=example.com/gpu:1 node=n2
                 pod b other=example.com/gpu:1 created=2026-01-01T00:00:00Z
                 pod c other=example.com/gpu:1 created=2026-01-01T00:00:01Z
                 pod d other=ephemeral-storage:8Gi created=2026-01-01T00:00:02Z
                 pod e other=ephemeral-storage:3Gi created=2026-01-01T00:00:03Z",
            )
            .pods(&[
                "a@n2",
                "b@n2",
                "c: 0/2 nodes are available: 2 Insufficient example.com/gpu. no new claims to deallocate, preemption: 0/2 nodes \
                 are available: 1 No preemption victims",
                "d@n1",
                "e: 0/2 nodes are available: 2 Insufficient ephemeral-storage. ",
            ]),
        case("resource claims are not supported")
            .before(
                "node n1
                 pod p devices=gpu",
            )
            .pods(&["p: 0/1 nodes are available: the pod has resource claims, which this scheduler does not allocate"]),
        case("the pod limit of a node")
            .before(
                "node n1 pods=2
                 pod a
                 pod b
                 pod c",
            )
            .pods(&["a@n1", "b@n1", "c: 0/1 nodes are available: 1 Too many pods. "]),
        case("a pod with a nominated node reserves its resources")
            .before(
                "node n1 cpu=2
                 pod a cpu=1500m nominated=n1 scheduler=other
                 pod b cpu=1",
            )
            .pods(&["a>n1", "b: 0/1 nodes are available: 1 Insufficient cpu. "]),
        case("a pod without requests fits on a full node")
            .before(
                "node n1 cpu=1 memory=1Gi
                 pod a cpu=1 memory=1Gi
                 pod b",
            )
            .pods(&["a@n1", "b@n1"]),
    ]
}

/// Resources that become free.
fn freed_resources() -> Vec<Case> {
    vec![
        case("a pod is deleted, and another gets its resources")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 node=n1
                 pod b cpu=1",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("a pod is deleted, and another gets its extended resource")
            .before(
                "node n1 other=example.com/gpu:1
                 pod a other=example.com/gpu:1 node=n1
                 pod b other=example.com/gpu:1",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("a pod completes, and another gets its resources")
            .before(
                "node n1 pods=1
                 pod a node=n1
                 pod b",
            )
            .then(|cluster| cluster.edit(&pod_key("a"), json!({"status": {"phase": "Succeeded"}})))
            .pods(&["a@n1", "b@n1"]),
        case("a pod with the port is deleted")
            .before(
                "node n1
                 pod a port=80 node=n1
                 pod b port=80",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("a pod with a nominated node is deleted")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 nominated=n1 scheduler=other
                 pod b cpu=1",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b@n1"]),
        case("the requests of a running pod are lowered")
            .before(
                "node n1 cpu=2
                 pod a cpu=2 node=n1
                 pod b cpu=1",
            )
            .then(|cluster| put(cluster, "pod a cpu=1 node=n1"))
            .pods(&["a@n1", "b@n1"]),
        case("the allocatable resources of a node are raised")
            .before(
                "node n1 cpu=1
                 pod a cpu=2",
            )
            .then(|cluster| put(cluster, "node n1 cpu=2"))
            .pods(&["a@n1"]),
        case("the requests of the waiting pod are lowered")
            .before(
                "node n1 cpu=1
                 pod a cpu=2",
            )
            .then(|cluster| put(cluster, "pod a cpu=1"))
            .pods(&["a@n1"]),
    ]
}

/// Scoring.
fn scoring() -> Vec<Case> {
    vec![
        case("pods are spread over equal nodes")
            .before(
                "node n1
                 node n2
                 pod a cpu=1 memory=2Gi
                 pod b cpu=1 memory=2Gi",
            )
            .pods(&["a@n1", "b@n2"]),
        case("the node with more free resources")
            .before(
                "node n1 cpu=2 memory=4Gi
                 node n2 cpu=4 memory=8Gi
                 pod a cpu=1 memory=2Gi",
            )
            .pods(&["a@n2"]),
    ]
}
