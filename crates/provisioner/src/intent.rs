//! The intent on a claim: that storage was asked for, or is about to be, and what for.

use bindery_verdict::{Accessibility, ClaimEdit, Edit, Intent, Order, Rule, Write};
use bindery_volumes::{Annotation, Claim, Name, finalizer};

use crate::Config;

/// How many places an intent remembers at most. An annotation has its limits; more of them are found out again.
const PLACES_MAX: usize = 200;

/// The intent on a claim, if it is ours.
pub(crate) fn of(claim: &Claim, config: &Config) -> Option<Intent> {
    let is_held = claim.finalizers.iter().any(|name| name == finalizer::PROVISIONING);
    let text = claim.annotations.get(Annotation::Provisioning);
    match text.and_then(|text| Intent::parse(text)) {
        Some(intent) => {
            let is_ours = config.answers_to(&intent.provisioner) && config.is_for(intent.node.as_ref());
            is_ours.then_some(intent)
        }
        // Somebody has written over it: whoever is asked for the claim's volume looks after it.
        None => {
            let is_ours = asked(claim).is_some_and(|name| config.answers_to(name)) && config.is_for(chosen(claim));
            (is_held && is_ours).then(Intent::default)
        }
    }
}

/// The node that was chosen for a claim.
pub(crate) fn chosen(claim: &Claim) -> Option<&Name> {
    claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty())
}

/// Who is asked for a claim's volume.
pub(crate) fn asked(claim: &Claim) -> Option<&Name> {
    let annotation = |annotation| claim.annotations.get(annotation);
    annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner))
}

/// Puts the intent on a claim.
pub(crate) fn put_down(rule: &'static Rule, claim: &Claim, config: &Config, order: &Order) -> Write {
    let is_small = |places: &&Accessibility| places.requisite.len() + places.preferred.len() <= PLACES_MAX;
    let topology = order.topology.as_ref().ok().and_then(Option::as_ref).filter(is_small).cloned();
    let intent = Intent { provisioner: config.name.clone(), node: order.node.clone(), topology };
    let mut finalizers: Vec<Name> = without_guard(claim);
    finalizers.push(Name::new_static(finalizer::PROVISIONING));
    let edit = ClaimEdit {
        annotations: vec![(Annotation::Provisioning, Some(intent.to_string().into()))],
        finalizers: Some(finalizers.into()),
        ..ClaimEdit::default()
    };
    Write::claim(rule, claim, Edit::Claim(edit))
}

/// Takes the intent off a claim, and the chosen node with it, where another is to be chosen.
pub(crate) fn take_off(rule: &'static Rule, claim: &Claim, and_node: bool) -> Write {
    let mut annotations = vec![(Annotation::Provisioning, None)];
    if and_node {
        annotations.push((Annotation::SelectedNode, None));
    }
    let edit = ClaimEdit { annotations, finalizers: Some(without_guard(claim).into()), ..ClaimEdit::default() };
    Write::claim(rule, claim, Edit::Claim(edit))
}

fn without_guard(claim: &Claim) -> Vec<Name> {
    claim.finalizers.iter().filter(|name| **name != finalizer::PROVISIONING).cloned().collect()
}
