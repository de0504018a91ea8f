//! The volume-protection controller: protects volumes from deletion while they are bound.

use bindery_cache::{Cache, Change};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{
    LiveReads, Profile, ProtectedObject, ResyncInterval, RuleSet, UnusedProof, Verdict, Write, users,
};

use crate::rules::volume_protection as rules;

/// The rule set of the volume-protection controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct VolumeProtection;

impl RuleSet for VolumeProtection {
    fn profile(&self) -> Profile {
        Profile {
            name: "persistentvolume-protection",
            component: "persistentvolume-protection",
            resync: ResyncInterval::Rarely,
            watches: &[Kind::Volume],
            queues: &[(Kind::Volume, "pvprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, _: &LiveReads) -> Verdict {
        if key.kind != Kind::Volume {
            return Verdict::idle(&rules::NOT_HANDLED);
        }
        let Some(volume) = known.volume(&key.name) else { return Verdict::idle(&rules::DELETED) };
        if let Some(error) = &volume.field_error {
            return Verdict::idle(&rules::MALFORMED).with_note(error.to_string());
        }
        let protected = ProtectedObject::Volume(volume);
        if protected.is_deleting_with_finalizer() {
            // The volume's own phase is the proof: the write fails if the volume has changed.
            return match UnusedProof::of_volume(volume) {
                Ok(proof) => Verdict::write(
                    &rules::REMOVE_FINALIZER,
                    Write::remove_finalizer(&rules::REMOVE_FINALIZER, protected, &proof),
                ),
                Err(claims) => {
                    Verdict::idle(&rules::IN_USE).with_note(format!("bound to {}", users(&claims, claims.len())))
                }
            };
        }
        if protected.is_missing_finalizer() {
            return Verdict::write(&rules::ADD_FINALIZER, Write::add_finalizer(&rules::ADD_FINALIZER, protected));
        }
        Verdict::idle(&rules::NO_ACTION)
    }

    fn wake(&self, _: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        if let Some(Object::Volume(volume)) = &change.after {
            let protected = ProtectedObject::Volume(volume);
            if protected.is_deleting_with_finalizer() || protected.is_missing_finalizer() {
                wake(ObjectKey::volume(volume.name().clone()));
            }
        }
    }
}
