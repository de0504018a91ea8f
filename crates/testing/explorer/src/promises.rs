//! The promises, checked on the objects of the API server, independently of the rules.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch, reserved_mismatch};
use bindery_model::{
    Annotation, Claim, ClaimPhase, Kind, ObjectKey, Pod, ReclaimPolicy, Volume, VolumePhase, finalizer,
};
use bindery_rules_api::{Edit, Operation, RefEdit, Request, VolumeEdit, Write};
use bindery_simulation::storage::StorageBackend;

use crate::World;
use crate::server::{Server, Stored};

type Check = Result<(), String>;

fn promise(holds: bool, broken: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(broken()) }
}

fn claims(server: &Server) -> impl Iterator<Item = &Arc<Claim>> {
    server.objects().filter_map(|(_, stored)| stored.object.get::<Claim>())
}

fn volumes(server: &Server) -> impl Iterator<Item = &Arc<Volume>> {
    server.objects().filter_map(|(_, stored)| stored.object.get::<Volume>())
}

fn volume<'a>(server: &'a Server, key: &ObjectKey) -> Option<&'a Arc<Volume>> {
    server.get(key).and_then(|stored| stored.object.get::<Volume>())
}

/// The claim with a UID that has a volume, or may get it.
fn owner<'a>(server: &'a Server, uid: &str, volume: &Volume) -> Option<&'a Arc<Claim>> {
    let has_it =
        |claim: &&Arc<Claim>| claim.meta.uid == uid && claim.volume.as_ref().is_none_or(|name| name == volume.name());
    claims(server).find(has_it)
}

// === When a request is sent ===

/// S2, S8: no second volume is reserved for a claim while the instance knows a suitable one, or
/// knows that the claim wants another. One that was reserved because of a stale cache is released
/// later.
pub fn check_sent(known: &Cache, request: &Request) -> Check {
    let Request::Write(write) = request else { return Ok(()) };
    let Edit::Volume(VolumeEdit { claim_ref: Some(RefEdit::Set(owner, _)), .. }) = write.edit() else { return Ok(()) };
    let Some(claim) = known.claim(&owner.key) else { return Ok(()) };
    if let Some(wanted) = &claim.volume {
        let is_wanted = *wanted == write.target().name;
        return promise(is_wanted, || format!("S8: {} wants {wanted}, and is given {}", owner.key, write.target()));
    }
    let criteria = MatchCriteria::of(claim, false).map_err(str::to_owned)?;
    let mut others = known.volumes_of(&owner.key).filter(|other| *other.name() != write.target().name);
    let has_one =
        others.any(|other| other.belongs_to(&claim.meta.uid) && reserved_mismatch(&criteria, other).is_none());
    promise(!has_one, || format!("S2: {} is reserved for {}, which has another", write.target(), owner.key))
}

// === When a request is carried out ===

/// Checks a request that changed the API server.
pub fn check_request(before: &Server, after: &Server, request: &Request) -> Check {
    match request {
        Request::Write(write) => {
            let key = write.target();
            let was = before.get(key).expect("the object existed");
            let is = after.get(key).map(|stored| &**stored);
            if let (Some(was), is) = (was.object.get::<Volume>(), is.and_then(|is| is.object.get::<Volume>())) {
                check_volume(before, was, is)?;
            }
            if let (Some(was), Some(is)) = (was.object.get::<Claim>(), is.and_then(|is| is.object.get::<Claim>())) {
                check_claim(before, was, is)?;
            }
            check_finalizers(before, write, was, is)?;
            let is_current = write.version() == was.object.meta().version && *write.uid() == was.object.meta().uid;
            promise(is_current || before.ignores_versions, || format!("S11: an unconditional write to {key}"))
        }
        Request::Delete(delete) => check_destroyed(before, &delete.proof().volume().uid, "deleted"),
        Request::Create(_) | Request::Bind(_) | Request::Read(_) | Request::List(_) | Request::RunOperation(_) => {
            Ok(())
        }
    }
}

/// S1, S6, S8: a volume is reserved only for a claim that it satisfies, and is never taken from a
/// claim that has it or may get it.
fn check_volume(before: &Server, was: &Volume, is: Option<&Arc<Volume>>) -> Check {
    let name = was.name();
    let now = is.and_then(|is| is.claim_ref.as_ref());
    if was.claim_ref.as_ref() == now || is.is_none() {
        return Ok(());
    }
    if let Some(former) = was.claim_ref.as_ref().filter(|former| !former.uid.is_empty()) {
        promise(owner(before, &former.uid, was).is_none(), || format!("S1: {name} was taken from {}", former.key))?;
    }
    if let (Some(was), Some(now)) = (&was.claim_ref, now) {
        promise(was.key == now.key, || {
            format!("S8: {name} is reserved for {}, and was given to {}", was.key, now.key)
        })?;
    }
    let Some(now) = now.filter(|now| !now.uid.is_empty()) else { return Ok(()) };
    let Some(claim) = claims(before).find(|claim| claim.meta.uid == now.uid) else { return Ok(()) };
    if was.claim_ref.is_none() && claim.volume.is_none() {
        let criteria = MatchCriteria::of(claim, false).map_err(str::to_owned)?;
        promise(mismatch(&criteria, was).is_none(), || format!("S6: {name} does not satisfy {}", claim.key()))?;
    }
    Ok(())
}

/// S3: the volume of a claim never changes. S13: a claim is marked Lost only if its volume does not
/// exist, or belongs to another claim.
fn check_claim(before: &Server, was: &Claim, is: &Claim) -> Check {
    let key = is.key();
    promise(was.volume.is_none() || was.volume == is.volume, || format!("S3: the volume of {key} was changed"))?;
    if is.status.phase == ClaimPhase::Lost && was.status.phase != ClaimPhase::Lost {
        let volume = is.volume.as_ref().and_then(|name| volume(before, &ObjectKey::volume(name.clone())));
        let may_be_its = |volume: &&Arc<Volume>| volume.claim_ref.is_none() || volume.belongs_to(&is.meta.uid);
        promise(!volume.is_some_and(|volume| may_be_its(&volume)), || {
            format!("S13: {key} is Lost, but has its volume")
        })?;
    }
    Ok(())
}

/// S12: a protection finalizer is removed only while nothing uses the object; the finalizer of
/// others never.
fn check_finalizers(before: &Server, write: &Write, was: &Stored, is: Option<&Stored>) -> Check {
    let names = |stored: &Stored| -> Vec<String> {
        let list = stored.json["metadata"]["finalizers"].as_array();
        list.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let left = is.map(names).unwrap_or_default();
    for removed in names(was).iter().filter(|name| !left.contains(name)) {
        let key = write.target();
        let is_ours = [
            finalizer::PVC_PROTECTION,
            finalizer::PV_PROTECTION,
            finalizer::PV_CONTROLLER,
            finalizer::EXTERNAL_PROVISIONER,
            finalizer::PROVISIONING,
        ];
        promise(is_ours.contains(&removed.as_str()), || format!("S12: {key} lost the foreign finalizer {removed}"))?;
        let in_use = match (&was.object.get::<Claim>(), &was.object.get::<Volume>()) {
            (Some(claim), _) if removed == finalizer::PVC_PROTECTION => {
                let mut pods = before.objects().filter_map(|(_, stored)| stored.object.get::<Pod>());
                pods.any(|pod| pod.protects(claim))
            }
            (_, Some(volume)) if removed == finalizer::PV_PROTECTION => volume.phase == VolumePhase::Bound,
            (_, _) => false,
        };
        promise(!in_use, || format!("S12: {key} lost its protection finalizer while in use"))?;
    }
    Ok(())
}

/// S4, S5: nothing is destroyed that a claim has or may get, or whose policy is Retain.
fn check_destroyed(server: &Server, uid: &str, what: &str) -> Check {
    let Some(volume) = volumes(server).find(|volume| volume.meta.uid == uid) else { return Ok(()) };
    let name = volume.name();
    promise(volume.policy != ReclaimPolicy::Retain, || format!("S5: {name} has the policy Retain, and was {what}"))?;
    let Some(claim) = &volume.claim_ref else { return Ok(()) };
    promise(owner(server, &claim.uid, volume).is_none(), || {
        format!("S4: {name} belongs to {}, and was {what}", claim.key)
    })
}

/// Checks a call of the storage when it is started: it cannot be undone.
pub fn check_call(server: &Server, operation: &Operation) -> Check {
    match operation {
        Operation::DeleteStorage(proof, _) => check_destroyed(server, &proof.volume().uid, "its storage deleted"),
        Operation::Recycle(recycle) => check_destroyed(server, &recycle.volume.uid, "scrubbed"),
        Operation::DiscardStorage(_, unused) => {
            let handle = unused["spec"]["csi"]["volumeHandle"].as_str();
            let mut stored = server.objects().map(|(_, stored)| &stored.json);
            let is_used = stored.any(|volume| volume["spec"]["csi"]["volumeHandle"].as_str() == handle);
            promise(!is_used, || format!("S4: the storage {handle:?} of a volume is discarded"))
        }
        Operation::CreateStorage(request, _) => {
            let is_derived = request.volume == format!("pvc-{}", request.uid);
            promise(is_derived, || format!("S10: {} is not derived from the UID {}", request.volume, request.uid))
        }
        Operation::Prepare(_) => Ok(()),
    }
}

/// S10: while a volume may exist, it is not requested with other parameters.
pub fn check_storage(storage: &StorageBackend) -> Check {
    let names = &storage.conflicting_names;
    promise(names.is_empty(), || format!("S10: {names:?} were requested with other parameters"))
}

// === When nothing happens anymore ===

/// L1, L2, L4: no claim waits for a suitable volume, no bind is incomplete, no volume has a wrong
/// phase.
pub fn bound(world: &World) -> Check {
    let server = &world.server;
    for claim in claims(server) {
        let key = claim.key();
        let named = claim.volume.as_ref().and_then(|name| volume(server, &ObjectKey::volume(name.clone())));
        if let Some(volume) = named.filter(|volume| volume.belongs_to(&claim.meta.uid)) {
            let is_complete = claim.is_bind_completed()
                && claim.status.phase == ClaimPhase::Bound
                && volume.phase == VolumePhase::Bound;
            promise(is_complete, || format!("L1: the bind of {key} is incomplete"))?;
        }
        if claim.needs_volume() && !claim.deleting {
            let criteria = MatchCriteria::of(claim, false).map_err(str::to_owned)?;
            let is_wanted = |volume: &Volume| claims(server).any(|other| other.volume.as_ref() == Some(volume.name()));
            let free = volumes(server).find(|volume| mismatch(&criteria, volume).is_none() && !is_wanted(volume));
            promise(free.is_none(), || format!("L1: {key} is not bound, but a volume satisfies it"))?;
        }
        if claim.is_bind_completed() && named.is_none_or(|volume| !volume.belongs_to(&claim.meta.uid)) {
            let is_lost = claim.status.phase == ClaimPhase::Lost;
            promise(is_lost, || format!("L4: the volume of {key} does not exist, but it is not Lost"))?;
        }
    }
    for volume in volumes(server) {
        let name = volume.name();
        match &volume.claim_ref {
            None if !volume.deleting => {
                promise(volume.phase == VolumePhase::Available, || format!("L4: {name} is not Available"))?;
            }
            Some(owner) if !owner.uid.is_empty() && !claims(server).any(|claim| claim.meta.uid == owner.uid) => {
                promise(volume.phase.is_released(), || format!("L2: {name} is not Released"))?;
            }
            Some(owner) => {
                let has_other = |claim: &Arc<Claim>| {
                    claim.meta.uid == owner.uid && claim.volume.as_ref().is_some_and(|other| other != name)
                };
                let is_left = volume.annotations.has(Annotation::BoundByController) && claims(server).any(has_other);
                promise(!is_left, || format!("L4: {name} stays reserved for {}, which has another", owner.key))?;
            }
            None => {}
        }
    }
    Ok(())
}

/// L4: every object has its protection finalizer; no unused object stays Terminating.
pub fn protected(world: &World) -> Check {
    for (key, stored) in world.server.objects() {
        let (finalizer, in_use) = if let Some(claim) = stored.object.get::<Claim>() {
            let mut pods = world.server.objects().filter_map(|(_, stored)| stored.object.get::<Pod>());
            (finalizer::PVC_PROTECTION, pods.any(|pod| pod.protects(claim)))
        } else if let Some(volume) = stored.object.get::<Volume>() {
            (finalizer::PV_PROTECTION, volume.phase == VolumePhase::Bound)
        } else {
            continue;
        };
        let names = stored.json["metadata"]["finalizers"].as_array();
        let has_finalizer = names.is_some_and(|names| names.iter().any(|name| *name == *finalizer));
        let is_deleting = !stored.json["metadata"]["deletionTimestamp"].is_null();
        promise(is_deleting || has_finalizer, || format!("L4: {key} has no protection finalizer"))?;
        promise(!is_deleting || in_use, || format!("L4: {key} stays Terminating, but is not in use"))?;
    }
    Ok(())
}

/// L2: no released volume with the policy Delete is left.
pub fn reclaimed(world: &World) -> Check {
    let is_left =
        |volume: &&Arc<Volume>| volume.phase == VolumePhase::Released && volume.policy == ReclaimPolicy::Delete;
    let left = volumes(&world.server).find(is_left);
    promise(left.is_none(), || format!("L2: {} is Released, but not deleted", left.map_or("", |volume| volume.name())))
}

/// L3, S10: every claim has a volume, every storage belongs to a volume, and no record is left.
pub fn provisioned(world: &World) -> Check {
    let record = world.server.objects().find(|(key, _)| key.kind == Kind::Record);
    promise(record.is_none(), || "L4: a provisioning record is left".to_owned())?;
    for claim in claims(&world.server) {
        let key = claim.key();
        let has_class = world.server.get(&ObjectKey::cluster(Kind::Class, claim.class().clone())).is_some();
        let is_missing =
            !claim.deleting && has_class && !volumes(&world.server).any(|it| it.belongs_to(&claim.meta.uid));
        promise(!is_missing, || format!("L3: {key} has no volume"))?;
    }
    let mut handles = world.storage.handles.values();
    let is_leaked = |handle: &&String| {
        let mut stored = world.server.objects().map(|(_, stored)| &stored.json);
        !stored.any(|volume| volume["spec"]["csi"]["volumeHandle"] == ***handle)
    };
    let leaked = handles.find(is_leaked);
    promise(leaked.is_none(), || format!("S10: the storage {} belongs to no volume", leaked.map_or("", String::as_str)))
}
