//! Volumes: guarding them, and removing what lies behind them once nobody has them.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Kind, Name, Object, ObjectKey, ReclaimPolicy, Source, Volume, VolumePhase, finalizer};
use bindery_rules_api::{
    Backoff, Delete, Edit, Event, FailureEffect, Listing, Measure, NotReleased, Operation, ReleaseProof,
    Request as Ask, Rule, Task, Timed, Verdict, VolumeEdit, Write,
};

use crate::set::Decision;
use crate::{Config, rules};

impl Decision<'_> {
    /// What is to be done about a volume.
    pub fn volume(self, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return Verdict::settle(&rules::VOLUME_GONE).measuring(Measure::End(Timed::Delete));
        };
        if let Some(flaw) = &volume.field_error {
            return Verdict::settle(&rules::VOLUME_MALFORMED).noting(flaw.to_string());
        }
        if !is_ours(self.config, volume) {
            return Verdict::settle(&rules::VOLUME_OTHERS);
        }
        if !self.config.reaches(volume) {
            return Verdict::settle(&rules::VOLUME_OTHERS).noting("it is not reachable from this node");
        }
        let has_finalizer = has_finalizer(volume);
        let deletes = volume.policy == ReclaimPolicy::Delete;
        if self.config.guards_volumes
            && deletes
            && !volume.deleting
            && volume.phase == VolumePhase::Bound
            && !has_finalizer
        {
            let guard = Name::new_static(finalizer::EXTERNAL_PROVISIONER);
            let finalizers = volume.finalizers.iter().cloned().chain([guard]).collect();
            return Verdict::write(&rules::GUARD, finalized(&rules::GUARD, volume, finalizers));
        }
        if has_finalizer && (!self.config.guards_volumes || !deletes) {
            return Verdict::write(&rules::UNGUARD, finalized(&rules::UNGUARD, volume, unguarded(volume)));
        }
        let is_held = !volume.deleting || self.config.guards_volumes && has_finalizer;
        if volume.phase != VolumePhase::Released || !deletes || !is_held {
            return Verdict::settle(&rules::KEPT);
        }
        self.remove(volume)
    }

    /// Removes what lies behind a volume, then the volume, one step at a time.
    fn remove(self, volume: &Volume) -> Verdict {
        if self.live_reads.is_done(Task::DeleteStorage) {
            return self.delete(volume);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::DeleteStorage) {
            if failure.after == FailureEffect::NotOurs {
                return Verdict::settle(&rules::REMOVE_OTHERS).measuring(Measure::Drop(Timed::Delete));
            }
            if failure.after == FailureEffect::Untried {
                return Verdict::retry(&rules::REMOVE_FAILED, Backoff::Api, &failure.error);
            }
            return failed(&rules::REMOVE_FAILED, volume, &failure.error);
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        let begin = Measure::Begin(Timed::Delete, volume.class_field.clone());
        Verdict::request(&rules::REMOVE, Ask::RunOperation(Operation::Remove(proof))).measuring(begin)
    }

    /// The storage is gone. The volume is deleted first and let go of last, so that its guard is never missed.
    fn delete(self, volume: &Volume) -> Verdict {
        if volume.deleting {
            return match has_finalizer(volume) {
                true => Verdict::write(&rules::LET_GO, finalized(&rules::LET_GO, volume, unguarded(volume))),
                false => Verdict::settle(&rules::LET_GO),
            };
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        match Delete::volume(&rules::DELETE, proof) {
            Some(delete) => Verdict::request(&rules::DELETE, Ask::Delete(delete)),
            None => Verdict::settle(&rules::NOT_RELEASED).noting("its policy is not Delete any more"),
        }
    }

    /// Proof that nobody has a volume, or the verdict that follows from there being none: a read, or leaving it alone.
    fn proof(self, volume: &Volume) -> Result<ReleaseProof, Box<Verdict>> {
        let read = |request| Box::new(Verdict::request(&rules::PROVE, request));
        let leave = |why: &str| Box::new(Verdict::settle(&rules::NOT_RELEASED).noting(why));
        let proof = ReleaseProof::find(volume, self.live_reads).map_err(|missing| match missing {
            NotReleased::ReadVolume => read(Ask::Read(ObjectKey::volume(volume.name().clone()))),
            NotReleased::ReadClaim(key) => read(Ask::Read(key.into())),
            NotReleased::VolumeGone => leave("the volume is gone"),
            NotReleased::VolumeChanged => leave("it has changed"),
            NotReleased::ClaimLives => leave("its claim lives"),
        })?;
        if !self.config.attaches {
            return Ok(proof);
        }
        let listing = Listing { kind: Kind::Attachment, namespace: Name::default() };
        let Some(found) = self.live_reads.listed(&listing) else { return Err(read(Ask::List(listing))) };
        match found.iter().find_map(|object| attached_to(object, volume)) {
            None => Ok(proof),
            Some(node) => {
                let error = format!("persistentvolume {} is still attached to node {node}", volume.name());
                Err(Box::new(failed(&rules::ATTACHED, volume, &error)))
            }
        }
    }
}

/// The node that a volume is attached to, if an object says so. One that cannot be understood may say so.
fn attached_to(object: &Object, volume: &Volume) -> Option<Name> {
    let Object::Attachment(attachment) = object else { return None };
    let is_of = attachment.volume.as_ref() == Some(volume.name()) || attachment.field_error.is_some();
    is_of.then(|| attachment.node.clone())
}

/// Whether a volume is ours: by who provisioned it, or, where nobody did, by whose storage lies behind it.
pub(crate) fn is_ours(config: &Config, volume: &Volume) -> bool {
    let ours = |name: Option<&Name>| name.is_some_and(|name| config.answers_to(name));
    let migrated = volume.annotations.get(Annotation::MigratedTo);
    match (volume.annotations.get(Annotation::ProvisionedBy), &volume.source) {
        (Some(provisioner), _) => ours(Some(provisioner)) || ours(migrated),
        (None, Source::Csi(driver)) => ours(Some(driver)),
        (
            None,
            Source::HostPath(_)
            | Source::Nfs(_)
            | Source::Migrated(_)
            | Source::Flex(_)
            | Source::Local(_)
            | Source::Other,
        ) => ours(migrated),
    }
}

fn has_finalizer(volume: &Volume) -> bool {
    volume.finalizers.iter().any(|name| name == finalizer::EXTERNAL_PROVISIONER)
}

fn unguarded(volume: &Volume) -> Box<[Name]> {
    volume.finalizers.iter().filter(|name| **name != finalizer::EXTERNAL_PROVISIONER).cloned().collect()
}

fn finalized(rule: &'static Rule, volume: &Volume, finalizers: Box<[Name]>) -> Write {
    let edit = VolumeEdit { finalizers: Some(finalizers), ..VolumeEdit::default() };
    Write::volume(rule, volume, Edit::Volume(edit))
}

fn failed(rule: &'static Rule, volume: &Volume, error: &str) -> Verdict {
    let notice = Event::volume(volume, EventType::Warning, Reason::VolumeFailedDelete, error);
    Verdict::retry(rule, Backoff::Storage, error).tell(notice).measuring(Measure::Fail(Timed::Delete))
}
