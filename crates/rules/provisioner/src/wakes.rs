//! Which claims and volumes a change wakes: those whose verdict it can affect.

use bindery_cache::{Cache, Change};
use bindery_model::{Claim, ClaimKey, CsiNode, Kind, Object, ObjectKey, Volume};

use crate::Config;
use crate::requested::{is_requested, selected_node};
use crate::volume::is_ours;

pub(crate) fn wake(config: &Config, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
    match (&change.before, &change.after) {
        (before, Some(Object::Claim(claim))) => {
            let before = before.as_ref().and_then(as_claim);
            if let Some(replaced) = before.filter(|before| before.meta.uid != claim.meta.uid) {
                wake_record(known, replaced, wake);
            }
            if concerns(config, known, claim) && before.is_none_or(|before| has_changed(before, claim)) {
                wake(claim.key().into());
            }
            if before.is_none_or(|before| before.status.phase != claim.status.phase) {
                wake_source(config, known, claim, wake);
            }
        }
        (Some(Object::Claim(claim)), None) => {
            wake(claim.key().into());
            wake_record(known, claim, wake);
            wake_source(config, known, claim, wake);
        }
        // Attempts do not count: they must not reset the back-off, or two instances would wake each
        // other forever.
        (None, Some(Object::Record(record))) | (Some(Object::Record(record)), None) => {
            wake(ObjectKey::record(record.meta.name.clone()));
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
                    }
                    Object::Claim(_)
                    | Object::AttributesClass(_)
                    | Object::Pod(_)
                    | Object::Node(_)
                    | Object::CsiNode(_)
                    | Object::CsiDriver(_)
                    | Object::Capacity(_)
                    | Object::Attachment(_)
                    | Object::Record(_) => {}
                }
            }
        }
    }
}

fn as_claim(object: &Object) -> Option<&Claim> {
    object.get::<Claim>().map(|claim| &**claim)
}

/// Whether a claim may concern this provisioner.
fn concerns(config: &Config, known: &Cache, claim: &Claim) -> bool {
    is_requested(claim, config)
        || known.record(&claim.meta.uid).is_some()
        || config.supports_cloning && claim.deleting && !claim.finalizers.is_empty()
}

/// Whether a claim's input to the rules has changed. Status updates do not count: they must not
/// reset the back-off.
fn has_changed(before: &Claim, after: &Claim) -> bool {
    before.meta.uid != after.meta.uid
        || before.annotations != after.annotations
        || before.finalizers != after.finalizers
        || before.deleting != after.deleting
        || before.volume != after.volume
        || before.class_field != after.class_field
        || before.field_error != after.field_error
}

/// Wakes the record of a claim that was deleted: nothing else decides about it anymore.
fn wake_record(known: &Cache, claim: &Claim, wake: &mut dyn FnMut(ObjectKey)) {
    if known.record(&claim.meta.uid).is_some() {
        wake(ObjectKey::record(claim.meta.uid.clone()));
    }
}

/// Wakes the source of a clone when the clone is complete or deleted.
fn wake_source(config: &Config, known: &Cache, claim: &Claim, wake: &mut dyn FnMut(ObjectKey)) {
    let Some(source) = claim.source.as_ref().filter(|_| config.supports_cloning) else { return };
    let key = ClaimKey { namespace: claim.meta.namespace.clone(), name: source.name.clone() };
    if known.claim(&key).is_some_and(|source| source.deleting) {
        wake(key.into());
    }
}

fn wake_for_volume(config: &Config, known: &Cache, volume: &Volume, wake: &mut dyn FnMut(ObjectKey)) {
    if is_ours(config, volume) {
        wake(ObjectKey::volume(volume.name().clone()));
    }
    let Some(reference) = &volume.claim_ref else { return };
    if known.record(&reference.uid).is_some() {
        wake(ObjectKey::record(reference.uid.clone()));
    }
    let Some(claim) = known.claim(&reference.key) else { return };
    if concerns(config, known, claim) {
        wake(claim.key().into());
    }
}

/// Wakes claims when the driver is registered on a node: all waiting claims if it is the first
/// node, otherwise those for which this node is selected.
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
    for class in classes.filter(|class| config.has_name(&class.provisioner)) {
        for key in known.claims_needing_volume(Some(&class.meta.name)) {
            let selected = known.claim(key).and_then(|claim| selected_node(claim));
            if is_first || selected == Some(&node.meta.name) {
                wake(key.clone().into());
            }
        }
    }
}
