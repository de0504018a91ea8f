//! Volumes: their finalizer, and deleting the backing storage of released ones.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Kind, Name, Object, ObjectKey, ReclaimPolicy, Source, Volume, VolumePhase, finalizer};
use bindery_rules_api::{
    Backoff, Delete, Edit, Event, FailureEffect, Listing, Measure, NotReleased, Operation, ReleaseProof, Request, Rule,
    Task, Timed, Verdict, VolumeEdit, Write,
};

use crate::ruleset::Decision;
use crate::{Config, rules};

impl Decision<'_> {
    /// Decides about a volume.
    pub fn volume(self, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return Verdict::idle(&rules::VOLUME_DELETED).measuring(Measure::End(Timed::Delete));
        };
        if let Some(error) = &volume.field_error {
            return Verdict::idle(&rules::VOLUME_MALFORMED).with_note(error.to_string());
        }
        if !is_ours(self.config, volume) {
            return Verdict::idle(&rules::VOLUME_NOT_OURS);
        }
        if !self.config.can_access(volume) {
            return Verdict::idle(&rules::VOLUME_NOT_OURS).with_note("the volume is not accessible from this node");
        }
        let has_finalizer = has_finalizer(volume);
        let deletes = volume.policy == ReclaimPolicy::Delete;
        if self.config.adds_finalizer
            && deletes
            && !volume.deleting
            && volume.phase == VolumePhase::Bound
            && !has_finalizer
        {
            let ours = Name::new_static(finalizer::EXTERNAL_PROVISIONER);
            let finalizers = volume.finalizers.iter().cloned().chain([ours]).collect();
            return set_finalizers(&rules::ADD_FINALIZER, volume, finalizers);
        }
        if has_finalizer && (!self.config.adds_finalizer || !deletes) {
            return set_finalizers(&rules::REMOVE_FINALIZER, volume, other_finalizers(volume));
        }
        let is_protected = !volume.deleting || self.config.adds_finalizer && has_finalizer;
        if volume.phase != VolumePhase::Released || !deletes || !is_protected {
            return Verdict::idle(&rules::KEPT);
        }
        self.delete_storage(volume)
    }

    /// Deletes the backing storage, then the volume, one step at a time.
    fn delete_storage(self, volume: &Volume) -> Verdict {
        if self.live_reads.is_done(Task::DeleteStorage) {
            return self.delete(volume);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::DeleteStorage) {
            if failure.effect == FailureEffect::NotOurs {
                return Verdict::idle(&rules::DELETE_STORAGE_NOT_OURS).measuring(Measure::Drop(Timed::Delete));
            }
            if failure.effect == FailureEffect::NotAttempted {
                return Verdict::retry(&rules::DELETE_STORAGE_FAILED, Backoff::Api, &failure.error);
            }
            return failed(&rules::DELETE_STORAGE_FAILED, volume, &failure.error);
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        let begin = Measure::Begin(Timed::Delete, volume.class_field.clone());
        let operation = Operation::DeleteStorage(proof, self.config.name.clone());
        Verdict::request(&rules::DELETE_STORAGE, Request::RunOperation(operation)).measuring(begin)
    }

    /// The storage is deleted, so the volume object can be. Its finalizer is removed last.
    fn delete(self, volume: &Volume) -> Verdict {
        if volume.deleting {
            return match has_finalizer(volume) {
                true => set_finalizers(&rules::DELETED_FINALIZER, volume, other_finalizers(volume)),
                false => Verdict::idle(&rules::DELETED_FINALIZER),
            };
        }
        let proof = match self.proof(volume) {
            Ok(proof) => proof,
            Err(verdict) => return *verdict,
        };
        match Delete::volume(&rules::DELETE, proof) {
            Some(delete) => Verdict::request(&rules::DELETE, Request::Delete(delete)),
            None => Verdict::idle(&rules::NOT_RELEASED).with_note("its reclaim policy is no longer Delete"),
        }
    }

    /// The proof that a volume is released and detached, or the verdict without it: a live read, or
    /// no action.
    fn proof(self, volume: &Volume) -> Result<ReleaseProof, Box<Verdict>> {
        let read = |request| Box::new(Verdict::request(&rules::VERIFY, request));
        let leave = |why: &str| Box::new(Verdict::idle(&rules::NOT_RELEASED).with_note(why));
        let proof = ReleaseProof::find(volume, self.live_reads).map_err(|missing| match missing {
            NotReleased::ReadVolume => read(Request::Read(ObjectKey::volume(volume.name().clone()))),
            NotReleased::ReadClaim(key) => read(Request::Read(key.into())),
            NotReleased::VolumeDeleted => leave("the volume was deleted"),
            NotReleased::VolumeChanged => leave("the volume has changed"),
            NotReleased::ClaimExists => leave("its claim exists"),
        })?;
        if !self.config.attachable {
            return Ok(proof);
        }
        let listing = Listing { kind: Kind::Attachment, namespace: Name::default() };
        let Some(found) = self.live_reads.listed(&listing) else { return Err(read(Request::List(listing))) };
        match found.iter().find_map(|object| attached_to(object, volume)) {
            None => Ok(proof),
            Some(node) => {
                let error = format!("persistentvolume {} is still attached to node {node}", volume.name());
                Err(Box::new(failed(&rules::ATTACHED, volume, &error)))
            }
        }
    }
}

/// The node that a VolumeAttachment attaches the volume to, if it does. One that cannot be parsed
/// counts as if it did.
fn attached_to(object: &Object, volume: &Volume) -> Option<Name> {
    let Object::Attachment(attachment) = object else { return None };
    let is_of = attachment.volume.as_ref() == Some(volume.name()) || attachment.field_error.is_some();
    is_of.then(|| attachment.node.clone())
}

/// Whether a volume is ours: by its provisioned-by annotation, or without one by its CSI driver.
pub(crate) fn is_ours(config: &Config, volume: &Volume) -> bool {
    let ours = |name: Option<&Name>| name.is_some_and(|name| config.has_name(name));
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

fn other_finalizers(volume: &Volume) -> Box<[Name]> {
    volume.finalizers.iter().filter(|name| **name != finalizer::EXTERNAL_PROVISIONER).cloned().collect()
}

fn set_finalizers(rule: &'static Rule, volume: &Volume, finalizers: Box<[Name]>) -> Verdict {
    let edit = VolumeEdit { finalizers: Some(finalizers), ..VolumeEdit::default() };
    Verdict::write(rule, Write::volume(rule, volume, Edit::Volume(edit)))
}

fn failed(rule: &'static Rule, volume: &Volume, error: &str) -> Verdict {
    let event = Event::volume(volume, EventType::Warning, Reason::VolumeFailedDelete, error);
    Verdict::retry(rule, Backoff::Storage, error).publish(event).measuring(Measure::Fail(Timed::Delete))
}
