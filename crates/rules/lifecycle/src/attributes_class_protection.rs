//! The attributes-class-protection controller: an attributes class that claims or volumes refer to does not go.

use bindery_cache::{Cache, Change};
use bindery_model::{Kind, Name, Object, ObjectKey};
use bindery_rules_api::{
    LiveReads, NotUnused, Profile, ProtectedObject, Request, ResyncInterval, RuleSet, UnusedProof, Verdict, Write,
    users,
};

use crate::rules::attributes_class_protection as rules;

/// The rule set of the attributes-class-protection controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttributesClassProtection;

impl RuleSet for AttributesClassProtection {
    fn profile(&self) -> Profile {
        Profile {
            name: "volumeattributesclass-protection",
            component: "volumeattributesclass-protection",
            tempo: ResyncInterval::Rarely,
            sees: &[Kind::AttributesClass, Kind::Claim, Kind::Volume],
            queues: &[(Kind::AttributesClass, "vacprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::AttributesClass {
            return Verdict::settle(&rules::NOT_OURS);
        }
        let Some(class) = known.attributes_class(&key.name) else { return Verdict::settle(&rules::GONE) };
        if let Some(flaw) = &class.field_error {
            return Verdict::settle(&rules::MALFORMED).noting(flaw.to_string());
        }
        let guarded = ProtectedObject::AttributesClass(class);
        if guarded.is_deleting_with_finalizer() {
            // What could not be understood may be a user.
            let flawed = [Kind::Claim, Kind::Volume].into_iter().flat_map(|kind| known.malformed_anywhere(kind));
            let known_users: Vec<ObjectKey> =
                known.attributes_class_users(&class.meta.name).iter().chain(flawed).cloned().collect();
            if !known_users.is_empty() {
                return Verdict::settle(&rules::HELD).noting(format!("referred to by {}", users(&known_users)));
            }
            return match UnusedProof::of_attributes_class(class, live_reads) {
                Ok(proof) => Verdict::write(&rules::LET_GO, Write::remove_finalizer(&rules::LET_GO, guarded, &proof)),
                Err(NotUnused::Look(listing)) => Verdict::request(&rules::LOOK, Request::List(listing)),
                Err(NotUnused::UsedBy(live)) => {
                    Verdict::settle(&rules::HELD).noting(format!("referred to by {}", users(&live)))
                }
            };
        }
        if guarded.is_missing_finalizer() {
            return Verdict::write(&rules::GUARD, Write::guard(&rules::GUARD, guarded));
        }
        Verdict::settle(&rules::AT_REST)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        let mut wake_class = |name: &Name| wake(ObjectKey::cluster(Kind::AttributesClass, name.clone()));
        if let Some(Object::AttributesClass(class)) = &change.after {
            let guarded = ProtectedObject::AttributesClass(class);
            if guarded.is_deleting_with_finalizer() || guarded.is_missing_finalizer() {
                wake_class(&class.meta.name);
            }
        }
        if change.before.as_ref().is_some_and(|before| before.field_error().is_some()) {
            // NoObserver knows which classes it referred to: it held all of them.
            let mut classes = known.keys(Kind::AttributesClass);
            classes.sort_unstable();
            classes.iter().filter(|key| is_deleted(known, &key.name)).for_each(|key| wake_class(&key.name));
        }
        // Only who stops referring to a class can let it go.
        let mut wake_deleted = |name: &Name| {
            if is_deleted(known, name) {
                wake_class(name);
            }
        };
        match &change.before {
            Some(Object::Claim(claim)) => claim.attributes_classes().for_each(&mut wake_deleted),
            Some(Object::Volume(volume)) => volume.attributes_class.iter().for_each(&mut wake_deleted),
            Some(
                Object::Class(_)
                | Object::AttributesClass(_)
                | Object::Pod(_)
                | Object::Node(_)
                | Object::CsiNode(_)
                | Object::CsiDriver(_)
                | Object::Capacity(_)
                | Object::Attachment(_),
            )
            | None => {}
        }
    }
}

fn is_deleted(known: &Cache, class: &Name) -> bool {
    known.attributes_class(class).is_some_and(|class| class.deleting)
}
