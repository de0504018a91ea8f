//! Reclaiming a released volume. Nothing is deleted or scrubbed without proof from live reads.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Name, ObjectKey, ReclaimPolicy, Source, Volume, finalizer};
use bindery_rules_api::{
    Backoff, Delete, Edit, Event, Failure, FailureEffect, HOST_PATH_PLUGIN, Measure, NotReleased, Operation, Recycle,
    RecycleStep, RecyclerPod, ReleaseProof, Request, Rule, Task, Timed, Verdict, VolumeEdit, Write,
};

use crate::decision::Decision;
use crate::host_path::MEASURED_AS;
use crate::plugins::{self, Handler};
use crate::volume::{is_migrated, unbind_edit};
use crate::{COMPONENT, RecyclerConfig, recycler, rules, status};

impl<'a> Decision<'a> {
    /// Reclaims a released volume as its policy says.
    pub fn reclaim(self, volume: &Volume) -> Verdict {
        if is_migrated(volume) {
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
        let marked = volume.annotations.get(Annotation::Scrubbing);
        let output = |task| self.live_reads.output(task).map(|output| RecyclerPod::from_output(output));
        if let Some(scrubbed) = output(Task::Recycle) {
            // Another instance may have started a scrub since, which must end first.
            return match marked == Some(&scrubbed.uid) {
                true => recycled(volume),
                false => superseded(),
            };
        }
        let failure = |task| self.live_reads.last_failure(task);
        if let Some(failure) = failure(Task::CreateRecyclerPod).or_else(|| failure(Task::Recycle)) {
            let message = format!("Recycle failed: {}", failure.error);
            return fail_and_retry(&rules::RECYCLE_FAILED, volume, Reason::VolumeFailedRecycle, &message);
        }
        if let Some(verdict) = self.used_by_pods(volume).filter(|_| marked.is_none()) {
            return verdict;
        }
        let Some(config) = self.recycler(volume) else {
            let message = "No recycler plugin found for the volume!";
            return fail(&rules::RECYCLE_NO_PLUGIN, volume, Reason::VolumeFailedRecycle, message);
        };
        let run = |rule, step| {
            let recycle =
                Recycle { step, volume: volume.meta.clone(), pod: recycler::pod(volume, config), component: COMPONENT };
            Verdict::request(rule, Request::RunOperation(Operation::Recycle(recycle.into())))
        };
        match output(Task::CreateRecyclerPod) {
            None => match self.proof(volume) {
                Ok(proof) => {
                    let marked = proof.recycler_pod().cloned();
                    run(&rules::RECYCLE_CREATE_POD, RecycleStep::CreatePod { marked })
                }
                Err(verdict) => *verdict,
            },
            Some(pod) if marked == Some(&pod.uid) => match self.proof(volume) {
                Ok(proof) => run(&rules::RECYCLE_SCRUB, RecycleStep::RunPod(proof)),
                Err(verdict) => *verdict,
            },
            // The pod does not run yet: another one may have replaced it only if the mark changed.
            Some(pod) if marked == pod.replaces.as_ref() => {
                Verdict::write(&rules::RECYCLE_MARK, mark(&rules::RECYCLE_MARK, volume, Some(pod.uid)))
            }
            Some(_) => superseded(),
        }
    }

    /// The recycler for a volume, if there is one.
    fn recycler(self, volume: &Volume) -> Option<&'a RecyclerConfig> {
        match &volume.source {
            Source::HostPath(_) => Some(&self.config.recycler_host_path),
            Source::Nfs(_) => Some(&self.config.recycler_nfs),
            Source::Csi(_) | Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => None,
        }
    }

    /// Stops the scrub of a volume that is no longer to be recycled, for example because a user
    /// removed its claimRef: the pod is deleted, then the mark.
    pub fn stop_scrub(self, volume: &Volume, marked: &Name) -> Verdict {
        let stopped = self.live_reads.output(Task::DeleteRecyclerPod).map(|output| RecyclerPod::from_output(output));
        if stopped.is_some_and(|pod| pod.uid == *marked) {
            return Verdict::write(&rules::RECYCLE_STOPPED, mark(&rules::RECYCLE_STOPPED, volume, None));
        }
        if let Some(failure) = self.live_reads.last_failure(Task::DeleteRecyclerPod) {
            return Verdict::retry(&rules::RECYCLE_STOP, Backoff::Operation, &failure.error);
        }
        let config = self.recycler(volume).unwrap_or(&self.config.recycler_host_path);
        let (step, pod) = (RecycleStep::DeletePod { marked: marked.clone() }, recycler::pod(volume, config));
        let recycle = Recycle { step, volume: volume.meta.clone(), pod, component: COMPONENT };
        Verdict::request(&rules::RECYCLE_STOP, Request::RunOperation(Operation::Recycle(recycle.into())))
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

/// Sets or removes the mark that a recycler pod may be scrubbing a volume.
fn mark(purpose: &'static Rule, volume: &Volume, pod: Option<Name>) -> Write {
    let edit = VolumeEdit { annotations: vec![(Annotation::Scrubbing, pod)], ..VolumeEdit::default() };
    Write::volume(purpose, volume, Edit::Volume(edit))
}

/// The scrub has ended: removes the claimRef and the mark in one write.
fn recycled(volume: &Volume) -> Verdict {
    let mut edit = unbind_edit(volume);
    edit.annotations.push((Annotation::Scrubbing, None));
    let event = Event::volume(volume, EventType::Normal, Reason::VolumeRecycled, "Volume recycled");
    let write = Write::volume(&rules::RECYCLE_DONE, volume, Edit::Volume(edit));
    Verdict::write(&rules::RECYCLE_DONE, write).publish(event)
}

/// Another instance has marked the volume with another pod: starts over.
fn superseded() -> Verdict {
    Verdict::retry(&rules::RECYCLE_SUPERSEDED, Backoff::Api, "the volume is marked with another recycler pod")
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
