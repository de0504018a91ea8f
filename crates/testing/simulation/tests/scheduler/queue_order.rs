//! The scheduling queue: gates, priorities, pods of other schedulers, completed pods.

use serde_json::json;

use crate::case::{Case, case, pod_key, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [not_scheduled(), gates(), priorities(), answers()].into_iter().flatten().collect()
}

fn not_scheduled() -> Vec<Case> {
    vec![
        case("a pod of another scheduler")
            .before(
                "node n1
                 pod p scheduler=other",
            )
            .pods(&["p: "])
            .requests(&[]),
        case("a pod with a node, even if the node does not exist")
            .before(
                "node n1
                 pod p node=n9",
            )
            .pods(&["p@n9"])
            .requests(&[]),
        case("pods that are completed or being deleted")
            .before(
                "node n1
                 pod p phase=Failed
                 pod q phase=Succeeded
                 pod r deleting=30",
            )
            .pods(&["p: ", "q: ", "r: "])
            .requests(&[]),
        case("a malformed pod is left alone until it is fixed")
            .before("node n1")
            .unseen_change(|cluster| {
                put(cluster, "pod p");
                cluster.edit(&pod_key("p"), json!({"spec": {"containers": "none"}}));
            })
            .then(|cluster| put(cluster, "pod p"))
            .pods(&["p@n1"]),
        case("a malformed pod")
            .before("node n1")
            .unseen_change(|cluster| {
                put(cluster, "pod p");
                cluster.edit(&pod_key("p"), json!({"spec": {"containers": "none"}}));
            })
            .pods(&["p: "])
            .requests(&[]),
        case("a waiting pod is deleted and created again")
            .before("pod p#one")
            .then(|cluster| cluster.remove(&pod_key("p")))
            .then(|cluster| put(cluster, "pod p#two\nnode n1"))
            .pods(&["p@n1"]),
        case("a waiting pod is deleted, and a node is created")
            .before("pod p")
            .then(|cluster| {
                cluster.edit(&pod_key("p"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
            })
            .then(|cluster| put(cluster, "node n1"))
            .pods(&["p: no nodes available"]),
    ]
}

fn gates() -> Vec<Case> {
    vec![
        case("a gate")
            .before(
                "node n1
                 pod p gate=one",
            )
            .pods(&["p: "])
            .requests(&[]),
        case("the last gate is removed")
            .before(
                "node n1
                 pod p gate=one gate=two",
            )
            .then(|cluster| put(cluster, "pod p gate=two"))
            .then(|cluster| put(cluster, "pod p"))
            .pods(&["p@n1"]),
        case("a gated pod does not block others, regardless of priority")
            .before(
                "node n1 cpu=1
                 pod p gate=one cpu=1 priority=9
                 pod q cpu=1",
            )
            .pods(&["p: ", "q@n1"]),
    ]
}

fn priorities() -> Vec<Case> {
    vec![
        case("the pod with the higher priority is first")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1
                 pod b cpu=1 priority=5
                 pod c cpu=1 priority=3",
            )
            .pods(&["a: 0/1", "b@n1", "c: 0/1"]),
        case("of equal priorities, the oldest pod is first")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 created=2026-01-01T00:00:02Z
                 pod b cpu=1 created=2026-01-01T00:00:00Z
                 pod c cpu=1 created=2026-01-01T00:00:01Z",
            )
            .pods(&["a: 0/1", "b@n1", "c: 0/1"]),
        case("priority takes precedence over age")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1 created=2026-01-01T00:00:01Z
                 pod b cpu=1 created=2026-01-01T00:00:00Z",
            )
            .pods(&["a@n1", "b: 0/1"]),
        case("freed resources go to the oldest pod")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 node=n1
                 pod b cpu=1 created=2026-01-01T00:00:01Z
                 pod c cpu=1 created=2026-01-01T00:00:00Z",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b: 0/1", "c@n1"]),
        case("an unschedulable pod of high priority does not block others")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1
                 pod b cpu=2 priority=5",
            )
            .pods(&["a@n1", "b: 0/1"]),
        case("freed resources go to the pod with the higher priority")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 node=n1
                 pod b cpu=1 priority=1
                 pod c cpu=1 priority=5",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b: 0/1", "c@n1"]),
        case("a pod of another scheduler with high priority does not block others")
            .before(
                "node n1 cpu=1
                 pod a cpu=1
                 pod b cpu=1 priority=5 scheduler=other",
            )
            .pods(&["a@n1", "b: "]),
        case("a malformed pod of high priority does not block others")
            .before(
                "node n1 cpu=1
                 pod a cpu=1",
            )
            .unseen_change(|cluster| {
                put(cluster, "pod b priority=5");
                cluster.edit(&pod_key("b"), json!({"spec": {"tolerations": "none"}}));
            })
            .pods(&["a@n1", "b: "]),
    ]
}

/// Lost answers and rejections.
fn answers() -> Vec<Case> {
    use bindery_engine::RequestError;
    use bindery_model::Kind;
    vec![
        case("the answer to the pod binding is lost")
            .before(
                "node n1
                 pod p",
            )
            .lost_answer("bind", Kind::Pod)
            .pods(&["p@n1"]),
        case("the pod binding is rejected, then accepted")
            .before(
                "node n1
                 pod p",
            )
            .error("bind", Kind::Pod, RequestError::Error(403, "forbidden".into()))
            .error("bind", Kind::Pod, RequestError::Conflict)
            .pods(&["p@n1"]),
        case("writing the pod condition is rejected, then accepted")
            .before("pod p")
            .error("write", Kind::Pod, RequestError::Error(403, "forbidden".into()))
            .pods(&["p: no nodes available"]),
    ]
}
