//! The attributes-class-protection controller: protects VolumeAttributesClasses from deletion while
//! claims or volumes refer to them.

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
            resync: ResyncInterval::Rarely,
            watches: &[Kind::AttributesClass, Kind::Claim, Kind::Volume],
            queues: &[(Kind::AttributesClass, "vacprotection")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::AttributesClass {
            return Verdict::idle(&rules::NOT_HANDLED);
        }
        let Some(class) = known.attributes_class(&key.name) else { return Verdict::idle(&rules::DELETED) };
        if let Some(error) = &class.field_error {
            return Verdict::idle(&rules::MALFORMED).with_note(error.to_string());
        }
        let protected = ProtectedObject::AttributesClass(class);
        if protected.is_deleting_with_finalizer() {
            // An object that could not be parsed may be a user.
            let malformed = [Kind::Claim, Kind::Volume].into_iter().flat_map(|kind| known.malformed_anywhere(kind));
            let count = known.attributes_class_user_count(&class.meta.name) + malformed.clone().count();
            if count > 0 {
                let known_users = known.attributes_class_users(&class.meta.name).chain(malformed);
                return Verdict::idle(&rules::IN_USE)
                    .with_note(format!("referred to by {}", users(known_users, count)));
            }
            return match UnusedProof::of_attributes_class(class, live_reads) {
                Ok(proof) => Verdict::write(
                    &rules::REMOVE_FINALIZER,
                    Write::remove_finalizer(&rules::REMOVE_FINALIZER, protected, &proof),
                ),
                Err(NotUnused::NeedsList(listing)) => Verdict::request(&rules::LIST_USERS, Request::List(listing)),
                Err(NotUnused::UsedBy(live)) => {
                    Verdict::idle(&rules::IN_USE).with_note(format!("referred to by {}", users(&live, live.len())))
                }
            };
        }
        if protected.is_missing_finalizer() {
            return Verdict::write(&rules::ADD_FINALIZER, Write::add_finalizer(&rules::ADD_FINALIZER, protected));
        }
        Verdict::idle(&rules::NO_ACTION)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        let mut wake_class = |name: &Name| wake(ObjectKey::cluster(Kind::AttributesClass, name.clone()));
        if let Some(Object::AttributesClass(class)) = &change.after {
            let protected = ProtectedObject::AttributesClass(class);
            if protected.is_deleting_with_finalizer() || protected.is_missing_finalizer() {
                wake_class(&class.meta.name);
            }
        }
        if change.before.as_ref().is_some_and(|before| before.field_error().is_some()) {
            // It could not be parsed, so it may have referred to any class.
            let mut classes = known.keys(Kind::AttributesClass);
            classes.sort_unstable();
            classes.iter().filter(|key| is_terminating(known, &key.name)).for_each(|key| wake_class(&key.name));
        }
        // A class can only become unused when an object stops referring to it.
        let mut wake_terminating = |name: &Name| {
            if is_terminating(known, name) {
                wake_class(name);
            }
        };
        match &change.before {
            Some(Object::Claim(claim)) => claim.attributes_classes().for_each(&mut wake_terminating),
            Some(Object::Volume(volume)) => volume.attributes_class.iter().for_each(&mut wake_terminating),
            Some(
                Object::Class(_)
                | Object::AttributesClass(_)
                | Object::Pod(_)
                | Object::Node(_)
                | Object::CsiNode(_)
                | Object::CsiDriver(_)
                | Object::Capacity(_)
                | Object::Attachment(_)
                | Object::Record(_),
            )
            | None => {}
        }
    }
}

fn is_terminating(known: &Cache, class: &Name) -> bool {
    known.attributes_class(class).is_some_and(|class| class.deleting)
}
