//! The promises of the lifecycle controllers, checked on the cluster's JSON, independently of the
//! rules and of the decoder.

use bindery_model::event::Reason;
use bindery_model::{Kind, ObjectKey, finalizer};
use bindery_rules_api::{Create, Edit, Event, Write};
use bindery_simulation::SimulatedCluster;
use serde_json::Value;

use crate::history::History;

pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn finalizers(object: &Value) -> Vec<&str> {
    list(object, "/metadata/finalizers").filter_map(Value::as_str).collect()
}

pub fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

fn protection_finalizer(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Claim => Some(finalizer::PVC_PROTECTION),
        Kind::Volume => Some(finalizer::PV_PROTECTION),
        Kind::AttributesClass => Some(finalizer::VAC_PROTECTION),
        Kind::Class
        | Kind::Pod
        | Kind::Node
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::Capacity
        | Kind::Attachment
        | Kind::Record => None,
    }
}

pub fn of_kind(cluster: &SimulatedCluster, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
    cluster.objects().filter(move |(key, _)| key.kind == kind)
}

/// The UID of the controller of an object.
pub fn controller(object: &Value) -> Option<&str> {
    let owner = list(object, "/metadata/ownerReferences").find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str()
}

/// The names of a pod's claims, and whether they are ephemeral.
pub fn claims_of(pod: &Value) -> Vec<(String, bool)> {
    let claim = |volume: &Value| {
        let named = text(volume, "/persistentVolumeClaim/claimName");
        if !named.is_empty() {
            return Some((named.to_owned(), false));
        }
        volume.get("ephemeral").map(|_| (format!("{}-{}", text(pod, "/metadata/name"), text(volume, "/name")), true))
    };
    list(pod, "/spec/volumes").filter_map(claim).collect()
}

/// Whether the volumes of a pod that refer to the claim are ephemeral.
fn references(pod: &Value, claim: &Value) -> impl Iterator<Item = bool> {
    let is_here = text(pod, "/metadata/namespace") == text(claim, "/metadata/namespace");
    let is_owned = controller(claim) == Some(text(pod, "/metadata/uid"));
    let name = text(claim, "/metadata/name").to_owned();
    let claims = claims_of(pod).into_iter();
    claims
        .filter(move |(claim, is_made)| is_here && *claim == name && (!is_made || is_owned))
        .map(|(_, is_made)| is_made)
}

fn protects(pod: &Value, claim: &Value) -> bool {
    let is_let_go = is_deleting(pod) && pod.pointer("/metadata/deletionGracePeriodSeconds") == Some(&Value::from(0));
    !text(pod, "/spec/nodeName").is_empty() && references(pod, claim).any(|is_made| !is_made || !is_let_go)
}

fn uses(pod: &Value, claim: &Value) -> bool {
    let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") || is_deleting(pod);
    !is_over && references(pod, claim).next().is_some()
}

/// The objects that prevent the deletion of an object.
fn users_of(cluster: &SimulatedCluster, key: &ObjectKey, object: &Value) -> Vec<ObjectKey> {
    match key.kind {
        Kind::Claim => {
            of_kind(cluster, Kind::Pod).filter(|(_, pod)| protects(pod, object)).map(|(k, _)| k.clone()).collect()
        }
        Kind::Volume if text(object, "/status/phase") == "Bound" => vec![key.clone()],
        Kind::AttributesClass => {
            let fields = [
                "/spec/volumeAttributesClassName",
                "/status/currentVolumeAttributesClassName",
                "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
            ];
            let refers_to = |user: &Value| fields.into_iter().any(|field| text(user, field) == key.name);
            let users = of_kind(cluster, Kind::Claim).chain(of_kind(cluster, Kind::Volume));
            users.filter(|(_, user)| refers_to(user)).map(|(k, _)| k.clone()).collect()
        }
        Kind::Volume
        | Kind::Class
        | Kind::Pod
        | Kind::Node
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::Capacity
        | Kind::Attachment
        | Kind::Record => Vec::new(),
    }
}

/// S11: a write carries the UID and the version of the object that it changes.
/// S12: a protection finalizer is removed only while nothing uses the object, a foreign one never.
pub fn check_write(before: &SimulatedCluster, after: &SimulatedCluster, write: &Write, history: &History) {
    let key = write.target();
    let was = before.get(key).expect("the object existed");
    let patch = write.patch("");
    for field in ["/metadata/uid", "/metadata/resourceVersion"] {
        assert_eq!(text(&patch, field), text(was, field), "{key}: {field}");
    }
    let is = after.get(key);
    let left = is.map(finalizers).unwrap_or_default();
    let removed: Vec<&str> = finalizers(was).into_iter().filter(|name| !left.contains(name)).collect();
    let added: Vec<&str> = left.iter().copied().filter(|name| !finalizers(was).contains(name)).collect();
    let Some(protection) = protection_finalizer(key.kind) else {
        let is_expected = matches!(key.kind, Kind::Pod | Kind::Record) && removed.is_empty() && added.is_empty();
        assert!(is_expected, "only pods, records and protected kinds are written: {key}, {removed:?}, {added:?}");
        return;
    };
    let may_change = |name: &&str| match write.edit() {
        Edit::Protection(_) => *name == protection,
        Edit::Volume(_) => [finalizer::PV_CONTROLLER, finalizer::EXTERNAL_PROVISIONER].contains(name),
        Edit::Claim(_) => *name == finalizer::PROVISIONING,
        Edit::ClaimStatus(_) | Edit::ClaimReport(_) => false,
        Edit::VolumeStatus(_) | Edit::PodStatus(_) | Edit::Record(_) => false,
    };
    assert!(removed.iter().chain(&added).all(may_change), "{key}: removed {removed:?}, added {added:?}");
    if removed.contains(&protection) {
        assert!(is_deleting(was), "{key} lost its protection finalizer without being deleted");
        let users = users_of(before, key, was);
        let in_time = |user: &&ObjectKey| before.get(user).is_none_or(|user| !history.was_placed_too_late(user));
        let users: Vec<_> = users.iter().filter(in_time).collect();
        assert!(users.is_empty(), "{key} lost its protection finalizer while used by {users:?}");
    }
    if matches!(write.edit(), Edit::Protection(_)) && added.is_empty() {
        assert_eq!(removed, [protection], "a write to {key} changed no finalizer");
    }
}

/// Claims are created only for ephemeral volumes of pods.
pub fn check_create(create: &Create) {
    if create.key.kind == Kind::Claim {
        let owner = text(&create.body, "/metadata/ownerReferences/0/name");
        assert!(create.key.name.starts_with(&format!("{owner}-")), "{} was created for {owner}", create.key);
        assert!(controller(&create.body).is_some_and(|uid| !uid.is_empty()), "{} has no controller", create.key);
    }
}

/// Once the faults have stopped: every object has its protection finalizer, no unused object stays
/// Terminating, every Unused condition is correct, and every ephemeral volume has its claim or an
/// event.
pub fn check_stable(cluster: &SimulatedCluster, published: &[Event]) {
    for (key, object) in cluster.objects() {
        let Some(protection) = protection_finalizer(key.kind) else { continue };
        let has_finalizer = finalizers(object).contains(&protection);
        assert!(is_deleting(object) || has_finalizer, "{key} has no protection finalizer");
        let users = users_of(cluster, key, object);
        assert!(!is_deleting(object) || !has_finalizer || !users.is_empty(), "{key} stays Terminating, but is unused");
    }
    for (key, claim) in of_kind(cluster, Kind::Claim) {
        if text(claim, "/status/phase") == "Bound" && !is_deleting(claim) {
            let is_used = of_kind(cluster, Kind::Pod).any(|(_, pod)| uses(pod, claim));
            let unused = list(claim, "/status/conditions").find(|condition| condition["type"] == "Unused");
            let expected = if is_used { "False" } else { "True" };
            assert_eq!(unused.map(|condition| text(condition, "/status")), Some(expected), "{key}");
        }
    }
    for (key, pod) in of_kind(cluster, Kind::Pod).filter(|(_, pod)| !is_deleting(pod)) {
        let missing = claims_of(pod).into_iter().filter(|(_, is_made)| *is_made).find(|(name, _)| {
            let claim = ObjectKey { kind: Kind::Claim, namespace: key.namespace.clone(), name: name.as_str().into() };
            cluster.get(&claim).and_then(controller) != Some(text(pod, "/metadata/uid"))
        });
        if let Some((name, _)) = missing {
            let is_reported = |event: &&Event| {
                event.meta.uid == text(pod, "/metadata/uid")
                    && event.reason == Reason::FailedBinding
                    && event.message.contains(&format!("{name} was not created for pod"))
            };
            assert!(
                published.iter().rev().find(is_reported).is_some(),
                "{key} has no claim {name}, and no event says so: {published:?}"
            );
        }
    }
}
