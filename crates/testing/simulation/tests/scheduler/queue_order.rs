//! Whose turn it is: gates, priorities, pods that are none of our business or over.

use serde_json::json;

use crate::case::{Case, case, pod_key, put};

/// All cases.
pub fn cases() -> Vec<Case> {
    [none_of_ours(), gates(), priorities(), answers()].into_iter().flatten().collect()
}

fn none_of_ours() -> Vec<Case> {
    vec![
        case("a pod of another scheduler")
            .before(
                "node n1
                 pod p scheduler=other",
            )
            .pods(&["p: "])
            .requests(&[]),
        case("a pod that has its node, be it one that does not exist")
            .before(
                "node n1
                 pod p node=n9",
            )
            .pods(&["p@n9"])
            .requests(&[]),
        case("pods that are over, or are being deleted")
            .before(
                "node n1
                 pod p phase=Failed
                 pod q phase=Succeeded
                 pod r deleting=30",
            )
            .pods(&["p: ", "q: ", "r: "])
            .requests(&[]),
        case("a pod that makes no sense is left alone, until it is mended")
            .before("node n1")
            .unseen_change(|cluster| {
                put(cluster, "pod p");
                cluster.edit(&pod_key("p"), json!({"spec": {"containers": "none"}}));
            })
            .then(|cluster| put(cluster, "pod p"))
            .pods(&["p@n1"]),
        case("a pod that makes no sense")
            .before("node n1")
            .unseen_change(|cluster| {
                put(cluster, "pod p");
                cluster.edit(&pod_key("p"), json!({"spec": {"containers": "none"}}));
            })
            .pods(&["p: "])
            .requests(&[]),
        case("a pod is deleted while it waits, and comes again")
            .before("pod p#one")
            .then(|cluster| cluster.remove(&pod_key("p")))
            .then(|cluster| put(cluster, "pod p#two\nnode n1"))
            .pods(&["p@n1"]),
        case("a pod is deleted while it waits, and its node comes")
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
        case("the last gate goes")
            .before(
                "node n1
                 pod p gate=one gate=two",
            )
            .then(|cluster| put(cluster, "pod p gate=two"))
            .then(|cluster| put(cluster, "pod p"))
            .pods(&["p@n1"]),
        case("a gated pod lets others go first, whatever it matters")
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
        case("who matters more goes first")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1
                 pod b cpu=1 priority=5
                 pod c cpu=1 priority=3",
            )
            .pods(&["a: 0/1", "b@n1", "c: 0/1"]),
        case("of those that matter as much, who has waited longest goes first")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 created=2026-01-01T00:00:02Z
                 pod b cpu=1 created=2026-01-01T00:00:00Z
                 pod c cpu=1 created=2026-01-01T00:00:01Z",
            )
            .pods(&["a: 0/1", "b@n1", "c: 0/1"]),
        case("who matters more goes before who has waited longer")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1 created=2026-01-01T00:00:01Z
                 pod b cpu=1 created=2026-01-01T00:00:00Z",
            )
            .pods(&["a@n1", "b: 0/1"]),
        case("room that comes back goes to who has waited longest")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 node=n1
                 pod b cpu=1 created=2026-01-01T00:00:01Z
                 pod c cpu=1 created=2026-01-01T00:00:00Z",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b: 0/1", "c@n1"]),
        case("who matters more, and cannot be placed, holds up nobody")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 priority=1
                 pod b cpu=2 priority=5",
            )
            .pods(&["a@n1", "b: 0/1"]),
        case("room that comes back goes to who matters more")
            .before(
                "node n1 cpu=1
                 pod a cpu=1 node=n1
                 pod b cpu=1 priority=1
                 pod c cpu=1 priority=5",
            )
            .then(|cluster| cluster.remove(&pod_key("a")))
            .pods(&["b: 0/1", "c@n1"]),
        case("another scheduler's pod that matters more holds up nobody")
            .before(
                "node n1 cpu=1
                 pod a cpu=1
                 pod b cpu=1 priority=5 scheduler=other",
            )
            .pods(&["a@n1", "b: "]),
        case("a pod that makes no sense and matters more holds up nobody")
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

/// Answers that are lost, and refusals.
fn answers() -> Vec<Case> {
    use bindery_engine::RequestError;
    use bindery_model::Kind;
    vec![
        case("the answer to giving a node is lost")
            .before(
                "node n1
                 pod p",
            )
            .lost_answer("bind", Kind::Pod)
            .pods(&["p@n1"]),
        case("giving a node is refused, then granted")
            .before(
                "node n1
                 pod p",
            )
            .error("bind", Kind::Pod, RequestError::Error("forbidden".into()))
            .error("bind", Kind::Pod, RequestError::Conflict)
            .pods(&["p@n1"]),
        case("saying that there is no node is refused, then granted")
            .before("pod p")
            .error("write", Kind::Pod, RequestError::Error("forbidden".into()))
            .pods(&["p: no nodes available"]),
    ]
}
