//! What a cluster does around the binder, as far as claims and volumes go: admission and defaults, what an API server refuses,
//! and the protection controllers.
//!
//! Objects are created, changed and deleted here as a person with kubectl would, by functions on a [`World`]. There are no pods
//! here, so a claim is never in use.

use std::time::Duration;

use bindery_volumes::{Kind, ObjectKey, finalizer};
use serde_json::{Value, json};

use crate::World;
use crate::run::Run;

/// Why an API server does not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is an object of that name.
    AlreadyExists,
    /// There is none.
    NotFound,
    /// The change is not allowed.
    Invalid(String),
}

impl Refused {
    /// The reason, as a status has it.
    pub fn reason(&self) -> &'static str {
        match self {
            Refused::AlreadyExists => "AlreadyExists",
            Refused::NotFound => "NotFound",
            Refused::Invalid(_) => "Invalid",
        }
    }
}

/// An empty cluster, which refuses what an API server refuses.
pub fn empty() -> World {
    let mut world = World::default();
    world.check = Some(check);
    world
}

/// Creates an object, with defaults and a protection finalizer. Returns its UID.
pub fn create(world: &mut World, key: &ObjectKey, mut object: Value) -> Result<String, Refused> {
    if world.get(key).is_some() {
        return Err(Refused::AlreadyExists);
    }
    let uid = format!("uid-{}", world.version() + 1);
    object["metadata"]["uid"] = uid.as_str().into();
    if let Some(guard) = guard_of(key.kind) {
        if object["spec"]["volumeMode"].is_null() {
            object["spec"]["volumeMode"] = "Filesystem".into();
        }
        object["status"] = json!({"phase": "Pending"});
        object["metadata"]["finalizers"] = with(&object, guard);
    }
    world.put(key.kind, object);
    Ok(uid)
}

/// Changes an object by a merge patch, unless the change is not allowed. One that changes nothing is no change.
pub fn patch(world: &mut World, key: &ObjectKey, patch: &Value) -> Result<(), Refused> {
    let object = world.get(key).ok_or(Refused::NotFound)?;
    let mut changed = object.clone();
    json_patch::merge(&mut changed, patch);
    check(key.kind, object, &changed).map_err(Refused::Invalid)?;
    if changed == *object {
        return Ok(());
    }
    let is_over = is_deleting(&changed) && finalizers(&changed).next().is_none();
    if is_over {
        world.remove(key)
    } else {
        world.put(key.kind, changed)
    }
    Ok(())
}

/// Deletes an object: at once, or as soon as it has no finalizers.
pub fn delete(world: &mut World, key: &ObjectKey) -> Result<(), Refused> {
    world.get(key).ok_or(Refused::NotFound)?;
    world.delete(key);
    Ok(())
}

/// What an API server finds wrong with a change.
pub fn check(kind: Kind, before: &Value, after: &Value) -> Result<(), String> {
    let has_new = finalizers(after).any(|name| !finalizers(before).any(|known| known == name));
    if is_deleting(before) && has_new {
        return Err("metadata.finalizers: no new finalizers can be added if the object is being deleted".into());
    }
    match kind {
        Kind::Claim => check_claim(before, after),
        Kind::Volume => check_volume(before, after),
        Kind::Class | Kind::AttributesClass | Kind::Pod | Kind::Node => Ok(()),
    }
}

/// A claim's spec stays as it is, but for a volume or a class where there was none, and what a bound claim asks for.
fn check_claim(before: &Value, after: &Value) -> Result<(), String> {
    let mut allowed = before["spec"].clone();
    for field in ["volumeName", "storageClassName"] {
        if before["spec"][field].is_null() && !after["spec"][field].is_null() {
            allowed[field] = after["spec"][field].clone();
        }
    }
    if before["status"]["phase"] == "Bound" {
        for field in ["resources", "volumeAttributesClassName"] {
            if !after["spec"][field].is_null() {
                allowed[field] = after["spec"][field].clone();
            }
        }
    }
    if after["spec"] == allowed {
        return Ok(());
    }
    Err("spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for \
         bound claims"
        .into())
}

/// A volume's source and mode stay as they are, and its node affinity once it has one.
fn check_volume(before: &Value, after: &Value) -> Result<(), String> {
    const SOURCES: [&str; 4] = ["csi", "hostPath", "nfs", "local"];
    let differs = |field: &str| before["spec"][field] != after["spec"][field];
    if SOURCES.into_iter().any(differs) {
        return Err(
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation".into()
        );
    }
    if differs("volumeMode") {
        return Err("volumeMode: Invalid value: field is immutable".into());
    }
    if differs("nodeAffinity") && !before["spec"]["nodeAffinity"].is_null() {
        return Err("nodeAffinity: Invalid value: field is immutable, except for updating from beta label to GA".into());
    }
    Ok(())
}

/// What the protection controllers do: they guard what is not deleted, and let go of what is, unless it is in use. Returns
/// whether they did anything.
pub fn protect(world: &mut World) -> bool {
    let mut edits = Vec::new();
    for (key, object) in world.objects() {
        let Some(guard) = guard_of(key.kind) else { continue };
        let is_guarded = finalizers(object).any(|name| name == guard);
        let is_used = key.kind == Kind::Volume && object["status"]["phase"] == "Bound";
        match (is_deleting(object), is_guarded) {
            (true, true) if !is_used => edits.push((key.clone(), without(object, guard))),
            (false, false) => edits.push((key.clone(), with(object, guard))),
            (_, _) => {}
        }
    }
    for (key, finalizers) in &edits {
        let edit = patch(world, key, &json!({"metadata": {"finalizers": finalizers}}));
        debug_assert_eq!(edit, Ok(()), "protection is always allowed");
    }
    !edits.is_empty()
}

/// Lets the engine and the protection controllers go on, with what is due within so long.
pub fn settle(run: &mut Run<'_>, duration: Duration) {
    let end = run.now() + duration;
    run.until_idle();
    loop {
        while protect(&mut run.world) {
            run.until_idle();
        }
        if run.next_tick().is_none_or(|moment| moment > end) {
            return;
        }
        run.tick();
    }
}

fn guard_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Claim => Some(finalizer::PVC_PROTECTION),
        Kind::Volume => Some(finalizer::PV_PROTECTION),
        Kind::Class | Kind::AttributesClass | Kind::Pod | Kind::Node => None,
    }
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn with(object: &Value, guard: &str) -> Value {
    let others = finalizers(object).filter(|name| *name != guard);
    others.chain([guard]).collect::<Vec<_>>().into()
}

fn without(object: &Value, guard: &str) -> Value {
    let others: Vec<&str> = finalizers(object).filter(|name| *name != guard).collect();
    if others.is_empty() { Value::Null } else { others.into() }
}
