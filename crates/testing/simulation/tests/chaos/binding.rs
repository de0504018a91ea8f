//! The promises of the binder, checked on the cluster's objects, independently of the rules.

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch, reserved_mismatch};
use bindery_model::{Annotation, Claim, ClaimPhase, Kind, Object, ObjectKey, ReclaimPolicy, Volume, VolumePhase};
use bindery_rules_api::{Edit, Operation, RecycleStep, RefEdit, Request, VolumeEdit};
use bindery_simulation::SimulatedCluster;

use crate::history::History;
use crate::protection;

/// Two requests never change the same object at the same time.
pub fn check_one_write_at_a_time<'a>(mut open: impl Iterator<Item = &'a Request>, next: &Request) {
    let changes = |request: &Request| request.locks_target().then(|| request.target());
    if let Some(target) = changes(next) {
        let is_free = open.all(|other| changes(other).is_none_or(|other| other != target));
        assert!(is_free, "two requests change {target} at once");
    }
}

fn claims(cluster: &SimulatedCluster) -> Vec<Claim> {
    let of_claim = |object: Object| object.get::<Claim>().map(|claim| claim.as_ref().clone());
    cluster.list(Kind::Claim).1.into_iter().filter_map(of_claim).collect()
}

fn volumes(cluster: &SimulatedCluster) -> Vec<Volume> {
    let of_volume = |object: Object| object.get::<Volume>().map(|volume| volume.as_ref().clone());
    cluster.list(Kind::Volume).1.into_iter().filter_map(of_volume).collect()
}

/// Whether a claim has a class with the binding mode WaitForFirstConsumer.
pub fn is_delayed(claim: &Claim) -> bool {
    ["late", "make"].contains(&claim.class().as_str())
}

fn find<T>(items: Vec<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    items.into_iter().find(is_it)
}

/// Checks a request that was carried out, with the cluster before and after it.
pub fn check(before: &SimulatedCluster, after: &SimulatedCluster, request: &Request, history: &History) {
    let target = request.target();
    match request {
        Request::Write(write) => {
            protection::check_write(before, after, write, history);
            if target.kind == Kind::Volume {
                check_volume_write(before, after, &target, history);
            } else if target.kind == Kind::Claim {
                check_claim_write(before, after, &target);
            }
        }
        Request::Delete(delete) => check_destroy(before, &delete.proof().volume().uid, "deleted"),
        Request::RunOperation(Operation::DeleteStorage(proof, _)) => {
            check_destroy(before, &proof.volume().uid, "its storage deleted");
        }
        Request::RunOperation(Operation::Recycle(recycle)) => match &recycle.step {
            RecycleStep::RunPod(proof) => check_destroy(before, &proof.volume().uid, "scrubbed"),
            RecycleStep::CreatePod { .. } | RecycleStep::DeletePod { .. } => {}
        },
        Request::RunOperation(Operation::Prepare(_) | Operation::CreateStorage(..) | Operation::DiscardStorage(..)) => {
        }
        Request::Create(create) => protection::check_create(create),
        Request::Bind(_) => {}
        Request::Read(_) | Request::List(_) => {}
    }
}

/// S1, S6, S8, S9: a volume is reserved only for a claim that it satisfies, and is never taken from
/// a claim that uses it.
fn check_volume_write(before: &SimulatedCluster, after: &SimulatedCluster, target: &ObjectKey, history: &History) {
    let was = find(volumes(before), |volume| *volume.name() == target.name).expect("the volume existed");
    let Some(is) = find(volumes(after), |volume| *volume.name() == target.name) else { return };
    if was.claim_ref == is.claim_ref {
        return;
    }
    if let Some(owner) = was.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty()) {
        let has_it = |claim: &Claim| {
            claim.meta.uid == owner.uid && claim.volume.as_ref().is_none_or(|volume| volume == is.name())
        };
        assert!(find(claims(before), has_it).is_none(), "{target} was taken from an existing claim");
    }
    if let (Some(was), Some(is)) = (&was.claim_ref, &is.claim_ref) {
        assert_eq!(was.key, is.key, "{target} was reserved for another claim");
    }
    let Some(owner) = is.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty()) else { return };
    let Some(claim) = find(claims(before), |claim| claim.meta.uid == owner.uid) else { return };
    if was.claim_ref.is_none() && claim.volume.is_none() {
        let is_wanted = !is_delayed(&claim) || history.was_used(&claim.meta.name);
        assert!(is_wanted, "{target} was bound though its claim waits for its first consumer");
        let request = MatchCriteria::of(&claim, false).expect("selectors make sense here");
        assert_eq!(mismatch(&request, &was), None, "{target} does not satisfy {}", claim.key());
    }
}

/// S2: no second volume is reserved for a claim while the engine knows a suitable one. A second
/// volume that was reserved because of a stale cache is released later.
pub fn check_no_second_volume(known: &Cache, request: &Request) {
    let Request::Write(write) = request else { return };
    let Edit::Volume(VolumeEdit { claim_ref: Some(RefEdit::Set(owner, _)), .. }) = write.edit() else { return };
    let Some(claim) = known.claim(&owner.key).filter(|claim| claim.volume.is_none()) else { return };
    let ask = MatchCriteria::of(claim, false).expect("selectors make sense here");
    for other in known.volumes_of(&owner.key).filter(|other| *other.name() != write.target().name) {
        let serves = other.belongs_to(&claim.meta.uid) && reserved_mismatch(&ask, other).is_none();
        assert!(!serves, "{} already has {}", owner.key, other.name());
    }
}

/// S3: the volume of a claim never changes. S9: no volume is requested from a provisioner before a
/// node is selected.
fn check_claim_write(before: &SimulatedCluster, after: &SimulatedCluster, target: &ObjectKey) {
    let was = find(claims(before), |claim| ObjectKey::from(claim.key()) == *target).expect("the claim existed");
    let Some(is) = find(claims(after), |claim| ObjectKey::from(claim.key()) == *target) else { return };
    assert!(was.volume.is_none() || was.volume == is.volume, "the volume of {target} was changed");
    if was.status.phase != is.status.phase && is.status.phase == ClaimPhase::Bound {
        assert!(is.is_bind_completed() && is.volume.is_some(), "{target} is Bound without a volume");
    }
    if let (Some(was), Some(is)) =
        (was.annotations.get(Annotation::SelectedNode), is.annotations.get(Annotation::SelectedNode))
    {
        assert_eq!(was, is, "the selected node of {target} was changed");
    }
    let is_asked = |claim: &Claim| claim.annotations.has(Annotation::StorageProvisioner);
    if is_delayed(&is) && is_asked(&is) && !is_asked(&was) {
        assert!(was.annotations.has(Annotation::SelectedNode), "a volume is requested though {target} has no node");
    }
}

/// S4, S5: no storage is destroyed that a claim uses, or whose policy is Retain.
fn check_destroy(cluster: &SimulatedCluster, volume_uid: &str, what: &str) {
    let Some(volume) = find(volumes(cluster), |volume| volume.meta.uid == volume_uid) else { return };
    assert_ne!(volume.policy, ReclaimPolicy::Retain, "{} has the policy Retain, and was {what}", volume.name());
    let Some(owner) = &volume.claim_ref else { return };
    let has_it =
        |claim: &Claim| claim.meta.uid == owner.uid && claim.volume.as_ref().is_none_or(|name| name == volume.name());
    let claim = find(claims(cluster), has_it);
    assert!(claim.is_none(), "{} belongs to an existing claim, and was {what}", volume.name());
}

/// S4: while a recycler pod may write to a volume, the volume is neither available nor does it
/// belong to a claim, no matter what it is marked with.
pub fn check_scrubs(cluster: &SimulatedCluster) {
    for (name, pod) in cluster.recycler_pods.running() {
        let Some(volume) = find(volumes(cluster), |volume| volume.meta.uid == pod.volume_uid) else { continue };
        assert!(volume.phase.is_released(), "{name} is {} while it is scrubbed", volume.phase.as_str());
        let owner = volume.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty());
        let claim = owner.and_then(|owner| find(claims(cluster), |claim| claim.meta.uid == owner.uid));
        assert!(claim.is_none(), "{name} belongs to a claim while it is scrubbed");
    }
}

/// L1, L2, L4: once the faults have stopped, no claim waits for a suitable volume, no bind is
/// incomplete, and every phase is correct.
pub fn check_stable(cluster: &SimulatedCluster) {
    let (claims, volumes) = (claims(cluster), volumes(cluster));
    for claim in &claims {
        let named = claim.volume.as_ref().and_then(|name| volumes.iter().find(|volume| volume.name() == name));
        if let Some(volume) = named.filter(|volume| volume.belongs_to(&claim.meta.uid)) {
            assert!(claim.is_bind_completed(), "the bind of {} is incomplete", claim.key());
            assert_eq!(claim.status.phase.as_str(), "Bound", "{}", claim.key());
            assert_eq!(volume.phase, VolumePhase::Bound, "{}", volume.name());
        }
        let request = MatchCriteria::of(claim, is_delayed(claim)).expect("selectors make sense here");
        for volume in volumes.iter().filter(|_| claim.needs_volume()) {
            let named = claims.iter().any(|other| other.volume.as_ref() == Some(volume.name()));
            let fits = mismatch(&request, volume).is_none() && !named;
            assert!(!fits, "{} is not bound though {} fits", claim.key(), volume.name());
        }
    }
    for volume in volumes.iter().filter(|volume| volume.claim_ref.is_none() && !volume.deleting) {
        assert_eq!(volume.phase, VolumePhase::Available, "{}", volume.name());
    }
    for volume in &volumes {
        let owner = volume.claim_ref.as_ref().filter(|owner| !owner.uid.is_empty());
        let exists = |uid: &str| claims.iter().any(|claim| claim.meta.uid == uid);
        if let Some(owner) = owner.filter(|owner| !exists(&owner.uid)) {
            assert!(
                volume.phase.is_released(),
                "{} is not Released though {} does not exist",
                volume.name(),
                owner.key
            );
        }
    }
}
