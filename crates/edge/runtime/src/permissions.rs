//! Which permissions a program lacks, asked with SelfSubjectAccessReviews.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_model::Kind;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::{Api, GetError};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// How often missing permissions are asked for again.
const MISSING_AGAIN: Duration = Duration::from_secs(5);
/// How often all permissions are asked for again.
const ALL_AGAIN: Duration = Duration::from_secs(300);
/// All permissions are asked for again after a request was forbidden, but not more often.
const FORBIDDEN_AGAIN: Duration = Duration::from_secs(30);

/// A verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The verb: `patch`.
    pub verb: &'static str,
    /// The API group; empty for core.
    pub group: &'static str,
    /// The resource, with the subresource: `persistentvolumes/status`.
    pub resource: &'static str,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The object's name; empty for all.
    pub name: String,
}

impl Permission {
    /// A permission in all namespaces.
    pub fn cluster(verb: &'static str, group: &'static str, resource: &'static str) -> Permission {
        Permission { verb, group, resource, namespace: String::new(), name: String::new() }
    }

    /// The permissions to watch a kind.
    pub fn to_watch(kind: Kind) -> [Permission; 2] {
        let (group, resource) = group_and_resource(kind);
        ["list", "watch"].map(|verb| Permission::cluster(verb, group, resource))
    }

    fn review(&self) -> http::Result<http::Request<Vec<u8>>> {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": self.verb,
                "group": self.group,
                "resource": resource,
                "subresource": subresource,
                "namespace": self.namespace,
                "name": self.name,
            }},
        });
        let request = http::Request::post(REVIEWS).header(http::header::CONTENT_TYPE, "application/json");
        request.body(review.to_string().into_bytes())
    }
}

/// The API group and the resource of a kind: `/apis/storage.k8s.io/v1/csinodes`.
fn group_and_resource(kind: Kind) -> (&'static str, &'static str) {
    let path = kind.path();
    let group = path.strip_prefix("/apis/").and_then(|path| path.split_once('/')).map_or("", |(group, _)| group);
    (group, path.rsplit_once('/').map_or(path, |(_, resource)| resource))
}

/// `patch persistentvolumes`, `update leases.coordination.k8s.io/bindery in namespace kube-system`
impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        write!(f, "{} {resource}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in namespace {}", self.namespace)?;
        }
        Ok(())
    }
}

/// The permissions that are missing, as far as is known.
#[derive(Clone, Default)]
pub struct PermissionStatus(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `None` before the first check.
    missing: Mutex<Option<Vec<Permission>>>,
    forbidden: Notify,
}

impl PermissionStatus {
    /// The missing permissions.
    pub fn missing(&self) -> Vec<Permission> {
        self.lock().clone().unwrap_or_default()
    }

    /// Why the program is not ready, in words.
    pub fn problems(&self) -> Vec<String> {
        match &*self.lock() {
            None => vec!["the permissions have not been checked yet".to_owned()],
            Some(missing) => missing.iter().map(|permission| format!("missing permission: {permission}")).collect(),
        }
    }

    /// A request was forbidden: all permissions are asked for again soon.
    pub fn request_forbidden(&self) {
        self.0.forbidden.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Permission>>> {
        self.0.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what is missing now, and logs what has changed.
    fn update(&self, missing: Vec<Permission>) {
        let before = self.lock().replace(missing.clone()).unwrap_or_default();
        for permission in missing.iter().filter(|permission| !before.contains(permission)) {
            tracing::error!(%permission, "permission missing");
        }
        for permission in before.iter().filter(|permission| !missing.contains(permission)) {
            tracing::info!(%permission, "permission granted");
        }
    }
}

/// Asks forever which of the needed permissions are missing: all of them from time to time and
/// after a request was forbidden, and those that are missing every few seconds, so that the program
/// becomes ready soon after they are granted.
pub async fn check_permissions(api: Api, needed: Vec<Permission>, status: PermissionStatus) {
    let mut last_error = None;
    loop {
        let (mut next_all, mut may_repeat) = (Instant::now() + ALL_AGAIN, Instant::now() + FORBIDDEN_AGAIN);
        match missing(&api, &needed).await {
            Ok(missing) => {
                last_error = None;
                status.update(missing);
            }
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    tracing::warn!(error, "permissions cannot be checked, retrying");
                }
                last_error = Some(error);
                // A server that does not answer such questions does not make the program unready.
                status.lock().get_or_insert_default();
                (next_all, may_repeat) = (Instant::now() + MISSING_AGAIN, next_all);
            }
        }
        while Instant::now() < next_all {
            let lacks = status.missing();
            tokio::select! {
                () = sleep(MISSING_AGAIN), if !lacks.is_empty() => {
                    if let Ok(missing) = missing(&api, &lacks).await {
                        status.update(missing);
                    }
                }
                () = status.0.forbidden.notified() => next_all = next_all.min(may_repeat),
                () = sleep_until(next_all) => {}
            }
        }
    }
}

/// Those of some permissions that are missing.
async fn missing(api: &Api, needed: &[Permission]) -> Result<Vec<Permission>, String> {
    let mut missing = Vec::new();
    for permission in needed {
        let request = permission.review().map_err(|error| error.to_string())?;
        let review = api.object(request).await.map_err(|error: GetError| error.to_string())?;
        if review["status"]["allowed"] != true {
            missing.push(permission.clone());
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_named_as_kubectl_names_them() {
        let named = |permission: Permission| permission.to_string();
        assert_eq!(named(Permission::cluster("patch", "", "persistentvolumes")), "patch persistentvolumes");
        let status = Permission::cluster("patch", "", "persistentvolumes/status");
        assert_eq!(named(status), "patch persistentvolumes/status");
        let lease = Permission {
            namespace: "kube-system".into(),
            name: "bindery-controller".into(),
            ..Permission::cluster("update", "coordination.k8s.io", "leases")
        };
        assert_eq!(named(lease), "update leases.coordination.k8s.io \"bindery-controller\" in namespace kube-system");
        let [list, watch] = Permission::to_watch(Kind::Class);
        assert_eq!(list, Permission::cluster("list", "storage.k8s.io", "storageclasses"));
        assert_eq!(watch, Permission::cluster("watch", "storage.k8s.io", "storageclasses"));
        assert_eq!(Permission::to_watch(Kind::Claim)[0], Permission::cluster("list", "", "persistentvolumeclaims"));
    }

    #[test]
    fn program_is_ready_once_all_permissions_are_granted() {
        let status = PermissionStatus::default();
        assert_eq!(status.problems(), ["the permissions have not been checked yet"]);
        status.update(vec![Permission::cluster("patch", "", "persistentvolumes")]);
        assert_eq!(status.problems(), ["missing permission: patch persistentvolumes"]);
        status.update(Vec::new());
        assert!(status.problems().is_empty());
    }
}
