//! Reclaiming a released volume. Nothing is deleted or scrubbed without proof from live reads.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Name, ObjectKey, ReclaimPolicy, Source, Volume, finalizer};
use bindery_rules_api::{
    Backoff, Delete, Edit, Event, Failure, FailureEffect, HOST_PATH_PLUGIN, Measure, NotReleased, Operation, Recycle,
    ReleaseProof, Request, Rule, Task, Timed, Verdict, VolumeEdit, Write,
};

use crate::decision::Decision;
use crate::host_path::MEASURED_AS;
use crate::plugins::{self, Handler};
use crate::volume::unbind;
use crate::{COMPONENT, recycler, rules, status};

impl Decision<'_> {
    /// Reclaims a released volume as its policy says.
    pub fn reclaim(self, volume: &Volume) -> Verdict {
        if volume.annotations.get(Annotation::MigratedTo).is_some_and(|driver| !driver.is_empty()) {
            return Verdict::idle(&rules::RECLAIM_MIGRATED);
        }
        match volume.policy {
            ReclaimPolicy::Retain => Verdict::idle(&rules::RECLAIM_RETAIN),
            ReclaimPolicy::Delete => self.delete(volume),
            ReclaimPolicy::Recycle => self.recycle(volume),
            ReclaimPolicy::Unknown(_) => {
                let message = "Volume has unrecognized PersistentVolumeReclaimPolicy";
                fail(&rules::RECLAIM_UNKNOWN_POLICY, volume, Reason::VolumeUnknownReclaimPolicy, message)
            }
        }
    }

    /// Deletes the backing storage, then the volume, one step at a time.
    fn delete(self, volume: &Volume) -> Verdict {
        match plugins::deleter(volume) {
            Handler::External(name) => {
                Verdict::idle(&rules::DELETE_EXTERNAL).measuring(Measure::Begin(Timed::Delete, name))
            }
            Handler::None(why) => fail(&rules::DELETE_NO_PLUGIN, volume, Reason::VolumeFailedDelete, &why),
            Handler::HostPath => {
                let verdict = self.delete_host_path(volume);
                let begin = Measure::Begin(Timed::Delete, MEASURED_AS);
                if verdict.measure.is_some() { verdict } else { verdict.measuring(begin) }
            }
        }
    }

    fn delete_host_path(self, volume: &Volume) -> Verdict {
        if self.live_reads.is_done(Task::DeleteStorage) {
            return self.delete_volume(volume);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::DeleteStorage) {
            return delete_failed(volume, failure);
        }
        if let Err(error) = plugins::check_deletable(volume) {
            return fail(&rules::DELETE_FAILED, volume, Reason::VolumeFailedDelete, &error)
                .measuring(Measure::Fail(Timed::Delete));
        }
        match self.proof(volume) {
            Ok(proof) => {
                let operation = Operation::DeleteStorage(proof, Name::new_static(HOST_PATH_PLUGIN));
                Verdict::request(&rules::DELETE_STORAGE, Request::RunOperation(operation))
            }
            Err(verdict) => *verdict,
        }
    }

    /// The storage is deleted, so the volume object can be. The finalizer is removed last: without
    /// it, a volume with backing storage could disappear.
    fn delete_volume(self, volume: &Volume) -> Verdict {
        if volume.deleting {
            let has_finalizer = volume.finalizers.iter().any(|name| name == finalizer::PV_CONTROLLER);
            return Verdict::write_or_idle(&rules::DELETE_FINALIZER, has_finalizer.then(|| remove_finalizer(volume)));
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        match Delete::volume(&rules::DELETE_VOLUME, proof) {
            Some(delete) => Verdict::request(&rules::DELETE_VOLUME, Request::Delete(delete)),
            None => Verdict::idle(&rules::RECLAIM_NOT_RELEASED).with_note("its reclaim policy is no longer Delete"),
        }
    }

    /// Scrubs a volume and makes it Available again, one step at a time.
    fn recycle(self, volume: &Volume) -> Verdict {
        if self.live_reads.is_done(Task::Recycle) {
            let event = Event::volume(volume, EventType::Normal, Reason::VolumeRecycled, "Volume recycled");
            let write = unbind(&rules::RECYCLE_DONE, volume);
            return Verdict::write(&rules::RECYCLE_DONE, write).publish(event);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::Recycle) {
            let message = format!("Recycle failed: {}", failure.error);
            return fail_and_retry(&rules::RECYCLE_FAILED, volume, Reason::VolumeFailedRecycle, &message);
        }
        if let Some(verdict) = self.used_by_pods(volume) {
            return verdict;
        }
        let config = match &volume.source {
            Source::HostPath(_) => &self.config.recycler_host_path,
            Source::Nfs(_) => &self.config.recycler_nfs,
            Source::Csi(_) | Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => {
                let message = "No recycler plugin found for the volume!";
                return fail(&rules::RECYCLE_NO_PLUGIN, volume, Reason::VolumeFailedRecycle, message);
            }
        };
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        let operation = Operation::Recycle(Recycle { proof, pod: recycler::pod(volume, config), component: COMPONENT });
        Verdict::request(&rules::RECYCLE_SCRUB, Request::RunOperation(operation))
    }

    /// Pods may still use a volume whose claim was deleted. If a new claim has that name, they are
    /// assumed to use the new one.
    fn used_by_pods(self, volume: &Volume) -> Option<Verdict> {
        let key = &volume.claim_ref.as_ref()?.key;
        let users: Vec<String> =
            self.known.pods_using(key).filter(|pod| !pod.is_terminated()).map(|pod| pod.key().to_string()).collect();
        if users.is_empty() || self.known.claim(key).is_some() {
            return None;
        }
        let message = format!("Volume is used by pods: {}", users.join(","));
        let event = Event::volume(volume, EventType::Normal, Reason::VolumeFailedRecycle, message);
        Some(Verdict::idle(&rules::RECYCLE_IN_USE).publish(event))
    }

    /// The proof that the volume is released, or the verdict without it: a live read, or no action.
    fn proof(self, volume: &Volume) -> Result<ReleaseProof, Box<Verdict>> {
        let namesake = volume.claim_ref.as_ref().and_then(|owner| self.known.claim(&owner.key));
        if let Some(error) = namesake.and_then(|claim| claim.field_error.as_ref()) {
            let why = format!("a claim of that name cannot be parsed: {error}");
            return Err(Box::new(Verdict::idle(&rules::RECLAIM_NOT_RELEASED).with_note(why)));
        }
        ReleaseProof::find(volume, self.live_reads).map_err(|missing| Box::new(unproven(missing, volume)))
    }
}

fn remove_finalizer(volume: &Volume) -> Write {
    let keep = |name: &&Name| **name != finalizer::PV_CONTROLLER;
    let finalizers = volume.finalizers.iter().filter(keep).cloned().collect();
    let edit = VolumeEdit { finalizers: Some(finalizers), ..VolumeEdit::default() };
    Write::volume(&rules::DELETE_FINALIZER, volume, Edit::Volume(edit))
}

fn unproven(missing: NotReleased, volume: &Volume) -> Verdict {
    let read = |key| Verdict::request(&rules::RECLAIM_VERIFY, Request::Read(key));
    let leave = |why: &str| Verdict::idle(&rules::RECLAIM_NOT_RELEASED).with_note(why);
    match missing {
        NotReleased::ReadVolume => read(ObjectKey::volume(volume.name().clone())),
        NotReleased::ReadClaim(key) => read(key.into()),
        // The live read has updated the cache and has woken every key that it affects.
        NotReleased::VolumeDeleted => leave("the volume was deleted"),
        NotReleased::VolumeChanged => leave("the volume has changed"),
        NotReleased::ClaimExists => leave("its claim exists"),
    }
}

/// Marks a volume Failed and publishes why, unless it is Failed already.
fn fail(rule: &'static Rule, volume: &Volume, reason: Reason, message: &str) -> Verdict {
    let event = Event::volume(volume, EventType::Warning, reason, message);
    Verdict::write_or_idle(rule, status::volume_failed(volume, event)).with_note(message)
}

/// Marks a volume Failed and retries.
fn fail_and_retry(rule: &'static Rule, volume: &Volume, reason: Reason, message: &str) -> Verdict {
    let event = Event::volume(volume, EventType::Warning, reason, message);
    match status::volume_failed(volume, event) {
        Some(write) => Verdict::write(rule, write).with_note(message),
        None => Verdict::retry(rule, Backoff::Operation, message),
    }
}

fn delete_failed(volume: &Volume, failure: &Failure) -> Verdict {
    let error = &failure.error;
    let verdict = match failure.effect {
        // The volume changed after the proof: it is decided about again, and nothing has failed.
        FailureEffect::NotAttempted => return Verdict::retry(&rules::DELETE_FAILED, Backoff::Api, error),
        FailureEffect::InUse => {
            let event = Event::volume(volume, EventType::Normal, Reason::VolumeDelete, error);
            Verdict::retry(&rules::DELETE_IN_USE, Backoff::Operation, error).publish(event)
        }
        FailureEffect::Nothing
        | FailureEffect::Unknown
        | FailureEffect::Reschedule
        | FailureEffect::Absent
        | FailureEffect::Infeasible
        | FailureEffect::NameTaken
        | FailureEffect::NotOurs
        | FailureEffect::Stale => fail_and_retry(&rules::DELETE_FAILED, volume, Reason::VolumeFailedDelete, error),
    };
    verdict.measuring(Measure::Fail(Timed::Delete))
}
