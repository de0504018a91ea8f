//! Who looks again when something changes: those whose verdict it can change.

use bindery_cache::{Cache, Change};
use bindery_model::{Annotation, Claim, ClaimKey, CsiNode, Kind, Name, Object, ObjectKey, Volume, finalizer};

use crate::volume::is_ours;
use crate::{Config, intent};

pub(crate) fn wake(config: &Config, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
    match (&change.before, &change.after) {
        (before, Some(Object::Claim(claim))) => {
            let before = before.as_ref().and_then(as_claim);
            if concerns(config, claim) && before.is_none_or(|before| is_new(before, claim)) {
                wake(claim.key().into());
            }
            if before.is_none_or(|before| before.status.phase != claim.status.phase) {
                wake_source(config, known, claim, wake);
            }
        }
        (Some(Object::Claim(claim)), None) => {
            wake(claim.key().into());
            wake_source(config, known, claim, wake);
        }
        (before, Some(Object::CsiNode(node))) => wake_for_node(config, known, before.as_ref(), node, wake),
        (before, after) => {
            for object in after.iter().chain(before) {
                match object {
                    Object::Volume(volume) => wake_for_volume(config, known, volume, wake),
                    Object::Class(class) => {
                        for claim in known.claims_needing_volume(Some(&class.meta.name)) {
                            wake(claim.clone().into());
                        }
                        wake_intended(config, known, &class.meta.name, wake);
                    }
                    Object::Claim(_)
                    | Object::AttributesClass(_)
                    | Object::Pod(_)
                    | Object::Node(_)
                    | Object::CsiNode(_)
                    | Object::CsiDriver(_)
                    | Object::Capacity(_)
                    | Object::Attachment(_) => {}
                }
            }
        }
    }
}

fn as_claim(object: &Object) -> Option<&Claim> {
    object.get::<Claim>().map(|claim| &**claim)
}

/// Whether a claim may be ours to do something about.
fn concerns(config: &Config, claim: &Claim) -> bool {
    intent::is_asked(claim, config)
        || intent::of(claim, config).is_some()
        || config.clones && claim.deleting && !claim.finalizers.is_empty()
}

/// Whether anything has changed of a claim that rules read and others decide. What others say in its status ends no back-off, nor
/// do their intents: where two work at once, each would wake the other for ever.
fn is_new(before: &Claim, after: &Claim) -> bool {
    fn annotations(claim: &Claim) -> impl Iterator<Item = (Annotation, &Name)> {
        claim.annotations.iter().filter(|(annotation, _)| *annotation != Annotation::Provisioning)
    }
    fn finalizers(claim: &Claim) -> impl Iterator<Item = &Name> {
        claim.finalizers.iter().filter(|name| **name != finalizer::PROVISIONING)
    }
    before.meta.uid != after.meta.uid
        || !annotations(before).eq(annotations(after))
        || !finalizers(before).eq(finalizers(after))
        || before.deleting != after.deleting
        || before.volume != after.volume
        || before.class_field != after.class_field
        || before.field_error != after.field_error
}

/// Claims that have got a volume meanwhile, and an intent all the same. Looks at all claims: a class changes seldom.
fn wake_intended(config: &Config, known: &Cache, class: &Name, wake: &mut dyn FnMut(ObjectKey)) {
    for key in known.keys(Kind::Claim) {
        let claim = known.claim(&key.claim_key()).filter(|claim| claim.class() == class && claim.volume.is_some());
        if claim.is_some_and(|claim| intent::of(claim, config).is_some()) {
            wake(key);
        }
    }
}

/// A claim that is filled, or gone, frees the one that it is filled from.
fn wake_source(config: &Config, known: &Cache, claim: &Claim, wake: &mut dyn FnMut(ObjectKey)) {
    let Some(source) = claim.source.as_ref().filter(|_| config.clones) else { return };
    let key = ClaimKey { namespace: claim.meta.namespace.clone(), name: source.name.clone() };
    if known.claim(&key).is_some_and(|source| source.deleting) {
        wake(key.into());
    }
}

fn wake_for_volume(config: &Config, known: &Cache, volume: &Volume, wake: &mut dyn FnMut(ObjectKey)) {
    if is_ours(config, volume) {
        wake(ObjectKey::volume(volume.name().clone()));
    }
    let Some(claim) = volume.claim_ref.as_ref().and_then(|claim| known.claim(&claim.key)) else { return };
    if concerns(config, claim) {
        wake(claim.key().into());
    }
}

/// A node on which the driver runs now is one that volumes can be made for. Where it is the first, that is news to everybody who
/// waits; else only to those for whom it was chosen.
fn wake_for_node(
    config: &Config,
    known: &Cache,
    before: Option<&Object>,
    node: &CsiNode,
    wake: &mut dyn FnMut(ObjectKey),
) {
    let has_driver = |node: &CsiNode| node.driver(&config.name).is_some_and(|driver| !driver.topology_keys.is_empty());
    let had_driver = matches!(before, Some(Object::CsiNode(before)) if has_driver(before));
    if config.topology.is_none() || had_driver || !has_driver(node) {
        return;
    }
    let others = known.keys(Kind::CsiNode).into_iter().filter(|key| key.name != node.meta.name);
    let is_first = !others.filter_map(|key| known.csi_node(&key.name)).any(|other| has_driver(other));
    let classes = known.keys(Kind::Class).into_iter().filter_map(|key| known.class(&key.name));
    for class in classes.filter(|class| config.answers_to(&class.provisioner)) {
        for key in known.claims_needing_volume(Some(&class.meta.name)) {
            let chosen = known.claim(key).and_then(|claim| intent::chosen(claim));
            if is_first || chosen == Some(&node.meta.name) {
                wake(key.clone().into());
            }
        }
    }
}
