//! Which claims and volumes a change wakes: exactly those whose verdict it can affect.

use bindery_cache::{Cache, Change};
use bindery_model::{Claim, Class, Object, ObjectKey, Pod, Volume};

/// Wakes the keys that a change affects.
pub(crate) fn wake(known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
    for object in change.after.iter().chain(&change.before) {
        match object {
            Object::Claim(claim) => of_claim(known, claim, wake),
            Object::Volume(volume) => of_volume(known, volume, wake),
            Object::Class(class) => of_class(known, class, wake),
            Object::Pod(pod) => of_pod(known, pod, wake),
            // Nodes are read only for provisioning, which is retried anyway.
            Object::AttributesClass(_)
            | Object::Node(_)
            | Object::CsiNode(_)
            | Object::CsiDriver(_)
            | Object::Capacity(_)
            | Object::Attachment(_)
            | Object::Record(_) => {}
        }
    }
}

/// A claim affects itself, the volumes whose claimRef names it, the volume that it names, and other
/// claims that name the same volume.
fn of_claim(known: &Cache, claim: &Claim, wake: &mut dyn FnMut(ObjectKey)) {
    let key = claim.key();
    if let Some(volume) = &claim.volume {
        wake(ObjectKey::volume(volume.clone()));
        for rival in known.claims_naming(volume).filter(|rival| rival.meta != claim.meta) {
            wake(rival.key().into());
        }
    }
    for volume in known.volumes_of(&key) {
        wake(ObjectKey::volume(volume.name().clone()));
    }
    wake(key.into());
}

/// A volume affects itself, the claim in its claimRef, and the claims that name it. Claims that it
/// may match are handed the volume one at a time, when the volume is decided about.
fn of_volume(known: &Cache, volume: &Volume, wake: &mut dyn FnMut(ObjectKey)) {
    if let Some(claim) = &volume.claim_ref {
        wake(claim.key.clone().into());
    }
    for claim in known.claims_naming(volume.name()) {
        wake(claim.key().into());
    }
    wake(ObjectKey::volume(volume.name().clone()));
}

/// A class affects its unbound claims; a default class also those without a class.
fn of_class(known: &Cache, class: &Class, wake: &mut dyn FnMut(ObjectKey)) {
    for claim in known.claims_needing_volume(Some(&class.meta.name)) {
        wake(claim.clone().into());
    }
    if class.is_default() {
        for claim in known.claims_needing_volume(None) {
            wake(claim.clone().into());
        }
    }
}

/// A pod affects the unbound claims that it uses, and the released volumes that cannot be scrubbed
/// while it runs.
fn of_pod(known: &Cache, pod: &Pod, wake: &mut dyn FnMut(ObjectKey)) {
    for key in pod.claim_keys() {
        for volume in known.volumes_of(&key).filter(|volume| volume.phase.is_released()) {
            wake(ObjectKey::volume(volume.name().clone()));
        }
        if known.claim(&key).is_some_and(|claim| claim.needs_volume()) {
            wake(key.into());
        }
    }
}
