//! The volume-protection controller: a volume that is bound does not go.

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
            tempo: ResyncInterval::Rarely,
            sees: &[Kind::Volume],
            queues: &[(Kind::Volume, "pvprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, _: &LiveReads) -> Verdict {
        if key.kind != Kind::Volume {
            return Verdict::settle(&rules::NOT_OURS);
        }
        let Some(volume) = known.volume(&key.name) else { return Verdict::settle(&rules::GONE) };
        if let Some(flaw) = &volume.field_error {
            return Verdict::settle(&rules::MALFORMED).noting(flaw.to_string());
        }
        let guarded = ProtectedObject::Volume(volume);
        if guarded.is_deleting_with_finalizer() {
            // What a volume is used for, it says itself: the write is refused if it says otherwise by now.
            return match UnusedProof::of_volume(volume) {
                Ok(proof) => Verdict::write(&rules::LET_GO, Write::remove_finalizer(&rules::LET_GO, guarded, &proof)),
                Err(claims) => Verdict::settle(&rules::HELD).noting(format!("held by {}", users(&claims))),
            };
        }
        if guarded.is_missing_finalizer() {
            return Verdict::write(&rules::GUARD, Write::guard(&rules::GUARD, guarded));
        }
        Verdict::settle(&rules::AT_REST)
    }

    fn wake(&self, _: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        if let Some(Object::Volume(volume)) = &change.after {
            let guarded = ProtectedObject::Volume(volume);
            if guarded.is_deleting_with_finalizer() || guarded.is_missing_finalizer() {
                wake(ObjectKey::volume(volume.name().clone()));
            }
        }
    }
}
