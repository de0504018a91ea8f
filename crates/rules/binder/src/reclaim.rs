//! Reclaiming: what becomes of a volume whose claim is gone. Nothing is destroyed without proof.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Name, ObjectKey, ReclaimPolicy, Source, Volume, finalizer};
use bindery_rules_api::{
    Backoff, Delete, Edit, Event, FailureEffect, Measure, NotReleased, Operation, Plugin, Recycle, ReleaseProof,
    Request as Ask, Rule, Task, Timed, Verdict, VolumeEdit, Write,
};

use crate::decision::Decision;
use crate::plugins::{self, Who};
use crate::provision::measured_as;
use crate::volume::unbind;
use crate::{COMPONENT, recycler, rules, status};

impl Decision<'_> {
    /// Does with a released volume what its policy says.
    pub fn reclaim(self, volume: &Volume) -> Verdict {
        if volume.annotations.get(Annotation::MigratedTo).is_some_and(|driver| !driver.is_empty()) {
            return Verdict::settle(&rules::RECLAIM_MIGRATED);
        }
        match volume.policy {
            ReclaimPolicy::Retain => Verdict::settle(&rules::RECLAIM_RETAIN),
            ReclaimPolicy::Delete => self.delete(volume),
            ReclaimPolicy::Recycle => self.recycle(volume),
            ReclaimPolicy::Unknown(_) => {
                let message = "Volume has unrecognized PersistentVolumeReclaimPolicy";
                fail(&rules::RECLAIM_UNKNOWN_POLICY, volume, Reason::VolumeUnknownReclaimPolicy, message)
            }
        }
    }

    /// Deletes what lies behind a volume, then the volume, one step at a time.
    fn delete(self, volume: &Volume) -> Verdict {
        match plugins::deleter(volume) {
            Who::External(name) => {
                let begin = Measure::Begin(Timed::Delete, name);
                Verdict::settle(&rules::DELETE_EXTERNAL).measuring(begin)
            }
            Who::NoObserver(why) => fail(&rules::DELETE_NO_PLUGIN, volume, Reason::VolumeFailedDelete, &why),
            Who::InTree(plugin) => {
                let begin = Measure::Begin(Timed::Delete, measured_as(plugin));
                let verdict = self.delete_in_tree(volume, plugin);
                if verdict.measure.is_some() { verdict } else { verdict.measuring(begin) }
            }
        }
    }

    fn delete_in_tree(self, volume: &Volume, plugin: Plugin) -> Verdict {
        if self.live_reads.is_done(Task::DeleteStorage) {
            return self.delete_volume(volume);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::DeleteStorage) {
            if failure.after != FailureEffect::InUse {
                return delete_failed(volume, &failure.error);
            }
            let notice = Event::volume(volume, EventType::Normal, Reason::VolumeDelete, &failure.error);
            return Verdict::retry(&rules::DELETE_IN_USE, Backoff::Operation, &failure.error)
                .tell(notice)
                .measuring(Measure::Fail(Timed::Delete));
        }
        let path = match plugins::deletable_path(volume) {
            Ok(path) => path,
            Err(error) => {
                return fail(&rules::DELETE_FAILED, volume, Reason::VolumeFailedDelete, &error)
                    .measuring(Measure::Fail(Timed::Delete));
            }
        };
        match self.proof(volume) {
            Ok(proof) => {
                let operation = Operation::DeleteStorage { proof, plugin, path };
                Verdict::request(&rules::DELETE_STORAGE, Ask::RunOperation(operation))
            }
            Err(verdict) => *verdict,
        }
    }

    /// The storage is gone: so may the volume be. It is deleted first and let go of last, so that its guard is never missed.
    fn delete_volume(self, volume: &Volume) -> Verdict {
        if volume.deleting {
            let guard = volume.finalizers.iter().any(|name| name == finalizer::PV_CONTROLLER);
            return Verdict::write_or_settle(&rules::DELETE_FINALIZER, guard.then(|| without_guard(volume)));
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        match Delete::volume(&rules::DELETE_VOLUME, proof) {
            Some(delete) => Verdict::request(&rules::DELETE_VOLUME, Ask::Delete(delete)),
            None => Verdict::settle(&rules::RECLAIM_NOT_RELEASED).noting("its policy is not Delete any more"),
        }
    }

    /// Scrubs a volume and offers it again, one step at a time.
    fn recycle(self, volume: &Volume) -> Verdict {
        if self.live_reads.is_done(Task::Recycle) {
            let notice = Event::volume(volume, EventType::Normal, Reason::VolumeRecycled, "Volume recycled");
            let write = unbind(&rules::RECYCLE_DONE, volume);
            return Verdict::write(&rules::RECYCLE_DONE, write).tell(notice);
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
        Verdict::request(&rules::RECYCLE_SCRUB, Ask::RunOperation(operation))
    }

    /// Pods may still use a volume whose claim is gone. Where there is a new claim of that name, they are taken to use that.
    fn used_by_pods(self, volume: &Volume) -> Option<Verdict> {
        let key = &volume.claim_ref.as_ref()?.key;
        let users: Vec<String> =
            self.known.pods_using(key).filter(|pod| !pod.is_terminated()).map(|pod| pod.key().to_string()).collect();
        if users.is_empty() || self.known.claim(key).is_some() {
            return None;
        }
        let message = format!("Volume is used by pods: {}", users.join(","));
        let notice = Event::volume(volume, EventType::Normal, Reason::VolumeFailedRecycle, message);
        Some(Verdict::settle(&rules::RECYCLE_IN_USE).tell(notice))
    }

    /// Proof that nothing is lost, or the verdict that follows from there being none: a read, or leaving the volume alone.
    fn proof(self, volume: &Volume) -> Result<ReleaseProof, Box<Verdict>> {
        let namesake = volume.claim_ref.as_ref().and_then(|owner| self.known.claim(&owner.key));
        if let Some(flaw) = namesake.and_then(|claim| claim.field_error.as_ref()) {
            let why = format!("a claim of that name cannot be understood: {flaw}");
            return Err(Box::new(Verdict::settle(&rules::RECLAIM_NOT_RELEASED).noting(why)));
        }
        ReleaseProof::find(volume, self.live_reads).map_err(|missing| Box::new(unproven(missing, volume)))
    }
}

fn without_guard(volume: &Volume) -> Write {
    let keep = |name: &&Name| **name != finalizer::PV_CONTROLLER;
    let finalizers = volume.finalizers.iter().filter(keep).cloned().collect();
    let edit = VolumeEdit { finalizers: Some(finalizers), ..VolumeEdit::default() };
    Write::volume(&rules::DELETE_FINALIZER, volume, Edit::Volume(edit))
}

fn unproven(missing: NotReleased, volume: &Volume) -> Verdict {
    let read = |key| Verdict::request(&rules::RECLAIM_PROVE, Ask::Read(key));
    let leave = |why: &str| Verdict::settle(&rules::RECLAIM_NOT_RELEASED).noting(why);
    match missing {
        NotReleased::ReadVolume => read(ObjectKey::volume(volume.name().clone())),
        NotReleased::ReadClaim(key) => read(key.into()),
        // In all of these, what was read is known by now, and word of it has woken whom it concerns.
        NotReleased::VolumeGone => leave("the volume is gone"),
        NotReleased::VolumeChanged => leave("it has changed"),
        NotReleased::ClaimLives => leave("its claim lives"),
    }
}

/// Marks a volume Failed and tells why, if it is not Failed yet; nothing more can be done.
fn fail(rule: &'static Rule, volume: &Volume, reason: Reason, message: &str) -> Verdict {
    let notice = Event::volume(volume, EventType::Warning, reason, message);
    Verdict::write_or_settle(rule, status::volume_failed(volume, notice)).noting(message)
}

/// The same, and it is tried again later.
fn fail_and_retry(rule: &'static Rule, volume: &Volume, reason: Reason, message: &str) -> Verdict {
    let notice = Event::volume(volume, EventType::Warning, reason, message);
    match status::volume_failed(volume, notice) {
        Some(write) => Verdict::write(rule, write).noting(message),
        None => Verdict::retry(rule, Backoff::Operation, message),
    }
}

fn delete_failed(volume: &Volume, error: &str) -> Verdict {
    fail_and_retry(&rules::DELETE_FAILED, volume, Reason::VolumeFailedDelete, error)
        .measuring(Measure::Fail(Timed::Delete))
}
