//! The agent's node, and the taint that is removed once its volumes exist.

use bindery_model::Node;
use bindery_runtime::{Api, GetError};
use serde_json::{Value, json};

/// Reads a node from the API server.
pub async fn read_node(api: &Api, name: &str) -> Result<Node, String> {
    let node = api.get(&path(name)).await.map_err(|error| format!("node {name:?}: {error}"))?;
    Node::from_json(node.to_string().as_bytes()).map_err(|error| format!("node {name:?}: {error}"))
}

/// Removes a taint from a node, unless the node has changed since it was read. Returns whether
/// there was one.
pub async fn remove_taint(api: &Api, name: &str, key: &str) -> Result<bool, String> {
    let node = api.get(&path(name)).await.map_err(|error| error.to_string())?;
    let Some(patch) = without_taint(&node, key) else { return Ok(false) };
    let request = http::Request::patch(path(name))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(patch.to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    match api.object(request).await {
        Ok(_) => Ok(true),
        Err(error @ (GetError::NotFound(_) | GetError::Rejected(..) | GetError::Lost(_))) => Err(error.to_string()),
    }
}

/// The patch that removes a taint; `None` if the node does not have it.
fn without_taint(node: &Value, key: &str) -> Option<Value> {
    let taints = node["spec"]["taints"].as_array()?;
    let rest: Vec<&Value> = taints.iter().filter(|taint| taint["key"] != key).collect();
    (rest.len() < taints.len()).then(|| {
        let metadata = &node["metadata"];
        json!({
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {"taints": rest},
        })
    })
}

fn path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_given_taint_is_removed() {
        let node =
            |taints: Value| json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"taints": taints}});
        let (ours, other) =
            (json!({"key": "ours", "effect": "NoSchedule"}), json!({"key": "other", "effect": "NoExecute"}));
        let patch = without_taint(&node(json!([ours, other])), "ours").expect("a patch");
        assert_eq!(
            patch,
            json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"taints": [other]}}),
            "only if the node has not changed"
        );
        assert_eq!(without_taint(&node(json!([other])), "ours"), None);
        assert_eq!(without_taint(&json!({"spec": {}}), "ours"), None);
    }
}
