//! The promises of the controllers beside the binder, checked by looking at the world's JSON: independent of the rules that are to
//! keep them, and of the decoder.

use bindery_model::event::Reason;
use bindery_model::{Kind, ObjectKey, finalizer};
use bindery_rules_api::{Create, Edit, Event, Write};
use bindery_simulation::World;
use serde_json::Value;

use crate::past::Past;

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

fn guard_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Claim => Some(finalizer::PVC_PROTECTION),
        Kind::Volume => Some(finalizer::PV_PROTECTION),
        Kind::AttributesClass => Some(finalizer::VAC_PROTECTION),
        Kind::Class | Kind::Pod | Kind::Node | Kind::CsiNode | Kind::CsiDriver | Kind::Capacity | Kind::Attachment => {
            None
        }
    }
}

pub fn of_kind(world: &World, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Value)> {
    world.objects().filter(move |(key, _)| key.kind == kind)
}

/// The UID of whoever controls an object.
pub fn controller(object: &Value) -> Option<&str> {
    let owner = list(object, "/metadata/ownerReferences").find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str()
}

/// The claims that a pod has to do with: their names, and whether they are made for it.
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

/// Whether a pod's volume is a very claim.
fn refers(pod: &Value, claim: &Value) -> impl Iterator<Item = bool> {
    let is_here = text(pod, "/metadata/namespace") == text(claim, "/metadata/namespace");
    let is_owned = controller(claim) == Some(text(pod, "/metadata/uid"));
    let name = text(claim, "/metadata/name").to_owned();
    let claims = claims_of(pod).into_iter();
    claims
        .filter(move |(claim, is_made)| is_here && *claim == name && (!is_made || is_owned))
        .map(|(_, is_made)| is_made)
}

fn holds(pod: &Value, claim: &Value) -> bool {
    let is_let_go = is_deleting(pod) && pod.pointer("/metadata/deletionGracePeriodSeconds") == Some(&Value::from(0));
    !text(pod, "/spec/nodeName").is_empty() && refers(pod, claim).any(|is_made| !is_made || !is_let_go)
}

fn uses(pod: &Value, claim: &Value) -> bool {
    let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") || is_deleting(pod);
    !is_over && refers(pod, claim).next().is_some()
}

/// Who keeps an object from going.
fn holders(world: &World, key: &ObjectKey, object: &Value) -> Vec<ObjectKey> {
    match key.kind {
        Kind::Claim => {
            of_kind(world, Kind::Pod).filter(|(_, pod)| holds(pod, object)).map(|(k, _)| k.clone()).collect()
        }
        Kind::Volume if text(object, "/status/phase") == "Bound" => vec![key.clone()],
        Kind::AttributesClass => {
            let fields = [
                "/spec/volumeAttributesClassName",
                "/status/currentVolumeAttributesClassName",
                "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
            ];
            let refers = |user: &Value| fields.into_iter().any(|field| text(user, field) == key.name);
            let users = of_kind(world, Kind::Claim).chain(of_kind(world, Kind::Volume));
            users.filter(|(_, user)| refers(user)).map(|(k, _)| k.clone()).collect()
        }
        Kind::Volume
        | Kind::Class
        | Kind::Pod
        | Kind::Node
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::Capacity
        | Kind::Attachment => Vec::new(),
    }
}

/// S11: a write that was carried out carried the UID and the version that the object had.
/// S12: a protection finalizer goes only when nothing uses the object at that very moment; a foreign finalizer never.
pub fn written(before: &World, after: &World, write: &Write, past: &Past) {
    let key = write.target();
    let was = before.get(key).expect("what was written was there");
    let patch = write.patch("");
    for field in ["/metadata/uid", "/metadata/resourceVersion"] {
        assert_eq!(text(&patch, field), text(was, field), "{key}: {field}");
    }
    let is = after.get(key);
    let left = is.map(finalizers).unwrap_or_default();
    let removed: Vec<&str> = finalizers(was).into_iter().filter(|name| !left.contains(name)).collect();
    let added: Vec<&str> = left.iter().copied().filter(|name| !finalizers(was).contains(name)).collect();
    let Some(guard) = guard_of(key.kind) else {
        assert_eq!(
            (key.kind, removed, added),
            (Kind::Pod, vec![], vec![]),
            "only what is guarded is written, and pods"
        );
        return;
    };
    let may_change = |name: &&str| match write.edit() {
        Edit::Protection(_) => *name == guard,
        Edit::Volume(_) => [finalizer::PV_CONTROLLER, finalizer::EXTERNAL_PROVISIONER].contains(name),
        Edit::Claim(_) => *name == finalizer::PROVISIONING,
        Edit::ClaimStatus(_) | Edit::ClaimReport(_) => false,
        Edit::VolumeStatus(_) | Edit::PodStatus(_) => false,
    };
    assert!(removed.iter().chain(&added).all(may_change), "{key}: removed {removed:?}, added {added:?}");
    if removed.contains(&guard) {
        assert!(is_deleting(was), "{key} lost its guard though nobody deleted it");
        let holders = holders(before, key, was);
        let in_time = |holder: &&ObjectKey| before.get(holder).is_none_or(|holder| !past.was_too_late(holder));
        let holders: Vec<_> = holders.iter().filter(in_time).collect();
        assert!(holders.is_empty(), "{key} lost its guard though {holders:?} use it");
    }
    if matches!(write.edit(), Edit::Protection(_)) && added.is_empty() {
        assert_eq!(removed, [guard], "{key} was written in vain");
    }
}

/// A claim is made for a pod's ephemeral volume, and for nothing else.
pub fn created(create: &Create) {
    if create.key.kind == Kind::Claim {
        let owner = text(&create.body, "/metadata/ownerReferences/0/name");
        assert!(create.key.name.starts_with(&format!("{owner}-")), "{} was made for {owner}", create.key);
        assert!(controller(&create.body).is_some_and(|uid| !uid.is_empty()), "{} has no owner", create.key);
    }
}

/// Once the faults have stopped: everything is guarded, nothing stays that nobody holds, every claim's condition tells the truth,
/// and every ephemeral volume has its claim, or the event that says why not.
pub fn nothing_left(world: &World, told: &[Event]) {
    for (key, object) in world.objects() {
        let Some(guard) = guard_of(key.kind) else { continue };
        let has_finalizer = finalizers(object).contains(&guard);
        assert!(is_deleting(object) || has_finalizer, "{key} is not guarded");
        let holders = holders(world, key, object);
        assert!(!is_deleting(object) || !has_finalizer || !holders.is_empty(), "{key} stays though nobody holds it");
    }
    for (key, claim) in of_kind(world, Kind::Claim) {
        if text(claim, "/status/phase") == "Bound" && !is_deleting(claim) {
            let is_used = of_kind(world, Kind::Pod).any(|(_, pod)| uses(pod, claim));
            let unused = list(claim, "/status/conditions").find(|condition| condition["type"] == "Unused");
            let expected = if is_used { "False" } else { "True" };
            assert_eq!(unused.map(|condition| text(condition, "/status")), Some(expected), "{key}");
        }
    }
    for (key, pod) in of_kind(world, Kind::Pod).filter(|(_, pod)| !is_deleting(pod)) {
        let missing = claims_of(pod).into_iter().filter(|(_, is_made)| *is_made).find(|(name, _)| {
            let claim = ObjectKey { kind: Kind::Claim, namespace: key.namespace.clone(), name: name.as_str().into() };
            world.get(&claim).and_then(controller) != Some(text(pod, "/metadata/uid"))
        });
        if let Some((name, _)) = missing {
            let is_said = |notice: &&Event| {
                notice.meta.uid == text(pod, "/metadata/uid")
                    && notice.reason == Reason::FailedBinding
                    && notice.message.contains(&format!("{name} was not created for pod"))
            };
            assert!(
                told.iter().rev().find(is_said).is_some(),
                "{key} has no claim {name}, and nobody was told: {told:?}"
            );
        }
    }
}
