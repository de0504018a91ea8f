//! The promises, checked by looking at the world: independent of the rules that are to keep them.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch, reserved_mismatch};
use bindery_model::{Annotation, Claim, ClaimPhase, Kind, Object, ObjectKey, ReclaimPolicy, Volume, VolumePhase};
use bindery_rules_api::{Edit, Operation, RefEdit, Request, VolumeEdit};
use bindery_simulation::World;

use crate::guards;
use crate::past::Past;

/// Two requests never change one object at once.
pub fn one_at_a_time<'a>(mut open: impl Iterator<Item = &'a Request>, next: &Request) {
    let changes = |request: &Request| request.locks_target().then(|| request.target());
    if let Some(target) = changes(next) {
        let is_free = open.all(|other| changes(other).is_none_or(|other| other != target));
        assert!(is_free, "two requests change {target} at once");
    }
}

fn claims(world: &World) -> Vec<Claim> {
    let of_claim = |object: Object| object.get::<Claim>().map(|claim| claim.as_ref().clone());
    world.list(Kind::Claim).1.into_iter().filter_map(of_claim).collect()
}

fn volumes(world: &World) -> Vec<Volume> {
    let of_volume = |object: Object| object.get::<Volume>().map(|volume| volume.as_ref().clone());
    world.list(Kind::Volume).1.into_iter().filter_map(of_volume).collect()
}

/// Whether a claim is of a class that binds when a pod needs it.
pub fn is_delayed(claim: &Claim) -> bool {
    ["late", "make"].contains(&claim.class().as_str())
}

fn find<T>(items: Vec<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    items.into_iter().find(is_it)
}

/// What must hold between the world before and after a request of ours.
pub fn check(before: &World, after: &World, request: &Request, past: &Past) {
    let target = request.target();
    match request {
        Request::Write(write) => {
            guards::written(before, after, write, past);
            if target.kind == Kind::Volume {
                volume_written(before, after, &target, past);
            } else if target.kind == Kind::Claim {
                claim_written(before, after, &target);
            }
        }
        Request::Delete(delete) => nobody_needs(before, &delete.proof().volume().uid, "deleted"),
        Request::RunOperation(Operation::DeleteStorage(proof, _)) => {
            nobody_needs(before, &proof.volume().uid, "its storage deleted");
        }
        Request::RunOperation(Operation::Recycle(recycle)) => {
            nobody_needs(before, &recycle.proof.volume().uid, "scrubbed")
        }
        Request::RunOperation(Operation::Prepare(_) | Operation::CreateStorage(..) | Operation::DiscardStorage(..)) => {
        }
        Request::Create(create) => guards::created(create),
        Request::Bind(_) => {}
        Request::Read(_) | Request::List(_) => {}
    }
}

/// S1, S6, S8, S9: a volume is given only to a claim that may have it, and never taken from one that has it.
fn volume_written(before: &World, after: &World, target: &ObjectKey, past: &Past) {
    let was = find(volumes(before), |volume| *volume.name() == target.name).expect("it was there");
    let Some(is) = find(volumes(after), |volume| *volume.name() == target.name) else { return };
    if was.claim_ref == is.claim_ref {
        return;
    }
    if let Some(owner) = was.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty()) {
        let has_it = |claim: &Claim| {
            claim.meta.uid == owner.uid && claim.volume.as_ref().is_none_or(|volume| volume == is.name())
        };
        assert!(find(claims(before), has_it).is_none(), "{target} was taken from a claim that lives");
    }
    if let (Some(was), Some(is)) = (&was.claim_ref, &is.claim_ref) {
        assert_eq!(was.key, is.key, "{target} was kept for another claim");
    }
    let Some(owner) = is.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty()) else { return };
    let Some(claim) = find(claims(before), |claim| claim.meta.uid == owner.uid) else { return };
    if was.claim_ref.is_none() && claim.volume.is_none() {
        let is_wanted = !is_delayed(&claim) || past.was_used(&claim.meta.name);
        assert!(is_wanted, "{target} was bound though its claim waits for a consumer");
        let request = MatchCriteria::of(&claim, false).expect("selectors make sense here");
        assert_eq!(mismatch(&request, &was), None, "{target} does not fit {}", claim.key());
    }
}

/// S2: no second volume is reserved for a claim while one is known that serves it. What nobody has told us of cannot be helped,
/// and is set free later.
pub fn no_second_volume(known: &Cache, request: &Request) {
    let Request::Write(write) = request else { return };
    let Edit::Volume(VolumeEdit { claim_ref: Some(RefEdit::Set(owner, _)), .. }) = write.edit() else { return };
    let Some(claim) = known.claim(&owner.key).filter(|claim| claim.volume.is_none()) else { return };
    let ask = MatchCriteria::of(claim, false).expect("selectors make sense here");
    for other in known.volumes_of(&owner.key).filter(|other| *other.name() != write.target().name) {
        let serves = other.belongs_to(&claim.meta.uid) && reserved_mismatch(&ask, other).is_none();
        assert!(!serves, "{} has {} already", owner.key, other.name());
    }
}

/// S3: a claim is given one volume, once. S9: nobody is asked to make one before a node is selected.
fn claim_written(before: &World, after: &World, target: &ObjectKey) {
    let was = find(claims(before), |claim| ObjectKey::from(claim.key()) == *target).expect("it was there");
    let Some(is) = find(claims(after), |claim| ObjectKey::from(claim.key()) == *target) else { return };
    assert!(was.volume.is_none() || was.volume == is.volume, "{target} was given another volume");
    if was.status.phase != is.status.phase && is.status.phase == ClaimPhase::Bound {
        assert!(is.is_bind_completed() && is.volume.is_some(), "{target} is Bound to nothing");
    }
    if let (Some(was), Some(is)) =
        (was.annotations.get(Annotation::SelectedNode), is.annotations.get(Annotation::SelectedNode))
    {
        assert_eq!(was, is, "a volume is being made for {target} on another node");
    }
    let is_asked = |claim: &Claim| claim.annotations.has(Annotation::StorageProvisioner);
    if is_delayed(&is) && is_asked(&is) && !is_asked(&was) {
        assert!(was.annotations.has(Annotation::SelectedNode), "a volume is asked for though {target} has no node");
    }
}

/// S4, S5: nothing is destroyed that a claim has, or that is to be retained.
fn nobody_needs(world: &World, volume_uid: &str, what: &str) {
    let Some(volume) = find(volumes(world), |volume| volume.meta.uid == volume_uid) else { return };
    assert_ne!(volume.policy, ReclaimPolicy::Retain, "{} is to be retained, and was {what}", volume.name());
    let Some(owner) = &volume.claim_ref else { return };
    let has_it =
        |claim: &Claim| claim.meta.uid == owner.uid && claim.volume.as_ref().is_none_or(|name| name == volume.name());
    let claim = find(claims(world), has_it);
    assert!(claim.is_none(), "{} belongs to a claim that lives, and was {what}", volume.name());
}

/// L1, L2, L4: once the faults have stopped, no claim waits for what is there, and nothing is half done.
pub fn nothing_left(world: &World) {
    let (claims, volumes) = (claims(world), volumes(world));
    for claim in &claims {
        let named = claim.volume.as_ref().and_then(|name| volumes.iter().find(|volume| volume.name() == name));
        if let Some(volume) = named.filter(|volume| volume.belongs_to(&claim.meta.uid)) {
            assert!(claim.is_bind_completed(), "{} is half bound", claim.key());
            assert_eq!(claim.status.phase.as_str(), "Bound", "{}", claim.key());
            assert_eq!(volume.phase, VolumePhase::Bound, "{}", volume.name());
        }
        let request = MatchCriteria::of(claim, is_delayed(claim)).expect("selectors make sense here");
        for volume in volumes.iter().filter(|_| claim.needs_volume()) {
            let named = claims.iter().any(|other| other.volume.as_ref() == Some(volume.name()));
            let fits = mismatch(&request, volume).is_none() && !named;
            assert!(!fits, "{} waits though {} fits", claim.key(), volume.name());
        }
    }
    for volume in volumes.iter().filter(|volume| volume.claim_ref.is_none() && !volume.deleting) {
        assert_eq!(volume.phase, VolumePhase::Available, "{}", volume.name());
    }
    for volume in &volumes {
        let owner = volume.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty());
        let lives = |uid: &str| claims.iter().any(|claim| claim.meta.uid == uid);
        if let Some(owner) = owner.filter(|owner| !lives(&owner.uid)) {
            assert!(volume.phase.is_released(), "{} belongs to {}, which is gone", volume.name(), owner.key);
        }
    }
}
