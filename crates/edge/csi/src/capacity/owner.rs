//! The owner of CSIStorageCapacity objects: this pod or one of its controllers.

use serde_json::{Value, json};

use crate::facts::ReadResult;
use crate::fields::text_or_empty;
use crate::objects::ObjectClient;

/// The owner reference to this pod (level 0), its controller (1), that one's controller (2), and so
/// on.
pub async fn owner(objects: &dyn ObjectClient, namespace: &str, pod: &str, level: u32) -> Result<Value, String> {
    let mut path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
    let mut reference = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "controller": true});
    for step in 0..=level {
        let is_last = step == level;
        // The last one is not read, unless it is the pod, whose UID only the API server knows.
        if is_last && level > 0 {
            break;
        }
        let object = match objects.get(&path).await {
            ReadResult::Object(object) => object,
            ReadResult::Missing(error) | ReadResult::Failed(error) => {
                return Err(format!("look up owner(s) of pod: {error}"));
            }
        };
        if is_last {
            reference["uid"] = object["metadata"]["uid"].clone();
            break;
        }
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        let controller = controller.ok_or_else(|| format!("look up owner(s) of pod: {path} has no controller"))?;
        path = path_of(namespace, controller)?;
        reference = json!({"controller": true});
        for field in ["apiVersion", "kind", "name", "uid"] {
            reference[field] = controller[field].clone();
        }
    }
    Ok(reference)
}

/// The path of an owner. The plural of the kinds that control pods ends in `s`.
fn path_of(namespace: &str, owner: &Value) -> Result<String, String> {
    let (version, kind, name) =
        (text_or_empty(owner, "/apiVersion"), text_or_empty(owner, "/kind"), text_or_empty(owner, "/name"));
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-./".contains(c));
    if ![version, kind, name].into_iter().all(plain) || name.contains('/') || name.contains("..") {
        return Err(format!("look up owner(s) of pod: invalid owner reference {owner}"));
    }
    let root = if version.contains('/') { "/apis" } else { "/api" };
    Ok(format!("{root}/{version}/namespaces/{namespace}/{}s/{name}", kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Patch, WriteResult};
    use futures::FutureExt;
    use futures::future::BoxFuture;

    struct Owners;

    impl ObjectClient for Owners {
        fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, ReadResult> {
            let controlled_by = |kind: &str, name: &str| {
                let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("u-{name}"),
                    "controller": true});
                json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "x"}, owner]}})
            };
            let found = match path {
                "/api/v1/namespaces/ns/pods/p" => ReadResult::Object(controlled_by("ReplicaSet", "rs")),
                "/apis/apps/v1/namespaces/ns/replicasets/rs" => ReadResult::Object(controlled_by("Deployment", "d")),
                "/apis/apps/v1/namespaces/ns/deployments/d" => ReadResult::Object(json!({"metadata": {"uid": "u-d"}})),
                other => ReadResult::Missing(format!("{other} not found")),
            };
            Box::pin(async { found })
        }

        fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, WriteResult> {
            Box::pin(async { WriteResult::Failed(format!("{} is not written", patch.path)) })
        }
    }

    #[test]
    fn owners_are_looked_up_level_by_level() {
        let of = |pod: &str, level| owner(&Owners, "ns", pod, level).now_or_never().expect("answers at once");
        let reference = |version: &str, kind: &str, name: &str, uid: &str| {
            Ok(json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}))
        };
        assert_eq!(of("p", 0), reference("v1", "Pod", "p", "u"));
        assert_eq!(of("p", 1), reference("apps/v1", "ReplicaSet", "rs", "u-rs"));
        assert_eq!(of("p", 2), reference("apps/v1", "Deployment", "d", "u-d"));
        assert!(of("p", 3).is_err_and(|error| error.contains("has no controller")));
        assert!(of("gone", 1).is_err());
    }
}
