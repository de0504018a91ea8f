//! With whom objects go: this pod, or whoever made it.

use serde_json::{Value, json};

use crate::facts::Found;
use crate::fields::text_or_empty;
use crate::look::Look;

/// The owner reference to this pod (level 0), to who made it (1), to who made that (2), and so on.
pub async fn owner(look: &dyn Look, namespace: &str, pod: &str, level: u32) -> Result<Value, String> {
    let mut path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
    let mut reference = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "controller": true});
    for step in 0..=level {
        let is_last = step == level;
        // The last one need not be read, except where it is the pod: only the API knows its UID.
        if is_last && level > 0 {
            break;
        }
        let object = match look.get(&path).await {
            Found::Object(object) => object,
            Found::Missing(error) | Found::Failed(error) => return Err(format!("look up owner(s) of pod: {error}")),
        };
        if is_last {
            reference["uid"] = object["metadata"]["uid"].clone();
            break;
        }
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let maker = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        let maker = maker.ok_or_else(|| format!("look up owner(s) of pod: {path} was made by nobody"))?;
        path = place(namespace, maker)?;
        reference = json!({"controller": true});
        for field in ["apiVersion", "kind", "name", "uid"] {
            reference[field] = maker[field].clone();
        }
    }
    Ok(reference)
}

/// Where an owner is. Those that make pods are called in the plural by an `s` more.
fn place(namespace: &str, owner: &Value) -> Result<String, String> {
    let (version, kind, name) =
        (text_or_empty(owner, "/apiVersion"), text_or_empty(owner, "/kind"), text_or_empty(owner, "/name"));
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-./".contains(c));
    if ![version, kind, name].into_iter().all(plain) || name.contains('/') || name.contains("..") {
        return Err(format!("look up owner(s) of pod: {owner} is no owner"));
    }
    let root = if version.contains('/') { "/apis" } else { "/api" };
    Ok(format!("{root}/{version}/namespaces/{namespace}/{}s/{name}", kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Patch, Wrote};
    use futures::FutureExt;
    use futures::future::BoxFuture;

    struct Made;

    impl Look for Made {
        fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Found> {
            let by = |kind: &str, name: &str| {
                let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("u-{name}"),
                    "controller": true});
                json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "x"}, owner]}})
            };
            let found = match path {
                "/api/v1/namespaces/ns/pods/p" => Found::Object(by("ReplicaSet", "rs")),
                "/apis/apps/v1/namespaces/ns/replicasets/rs" => Found::Object(by("Deployment", "d")),
                "/apis/apps/v1/namespaces/ns/deployments/d" => Found::Object(json!({"metadata": {"uid": "u-d"}})),
                other => Found::Missing(format!("{other} is not there")),
            };
            Box::pin(async { found })
        }

        fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, Wrote> {
            Box::pin(async { Wrote::Failed(format!("{} is not written", patch.path)) })
        }
    }

    #[test]
    fn owners_are_looked_up_one_by_one() {
        let of = |pod: &str, level| owner(&Made, "ns", pod, level).now_or_never().expect("nothing is waited for");
        let reference = |version: &str, kind: &str, name: &str, uid: &str| {
            Ok(json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}))
        };
        assert_eq!(of("p", 0), reference("v1", "Pod", "p", "u"));
        assert_eq!(of("p", 1), reference("apps/v1", "ReplicaSet", "rs", "u-rs"));
        assert_eq!(of("p", 2), reference("apps/v1", "Deployment", "d", "u-d"));
        assert!(of("p", 3).is_err_and(|error| error.contains("made by nobody")));
        assert!(of("gone", 1).is_err());
    }
}
