//! The intent on a claim: that storage was asked for, or is about to be, and what for.

use bindery_model::migration::Plugin;
use bindery_model::{Annotation, Claim, Name, finalizer};
use bindery_rules_api::{Accessibility, Attempt, ClaimEdit, Edit, Intent, ProvisionRequest, Rule, Write};
use serde_json::Value;

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
            let is_ours = is_asked(claim, config) && config.is_for(chosen(claim));
            (is_held && is_ours).then(Intent::default)
        }
    }
}

/// The node that was chosen for a claim.
pub(crate) fn chosen(claim: &Claim) -> Option<&Name> {
    claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty())
}

/// Whether we are asked for a claim's volume. Where that is by the name of an in-tree plugin, the claim has to say that we have
/// taken over from it: else the plugin may make the volume too.
pub(crate) fn is_asked(claim: &Claim, config: &Config) -> bool {
    let annotation = |annotation| claim.annotations.get(annotation);
    let asked = annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner));
    let is_handed_over = || annotation(Annotation::MigratedTo) == Some(&config.name);
    asked.is_some_and(|name| config.answers_to(name) && (Plugin::named(name).is_none() || is_handed_over()))
}

/// The turn in which we ask for what was prepared: the one after that which was seen then.
pub(crate) fn turn(config: &Config, prepared: &Value) -> Attempt {
    let number = prepared["turn"]["number"].as_u64().unwrap_or_default().saturating_add(1);
    Attempt { instance: config.instance.clone(), number }
}

/// Puts the intent on a claim, or on with a new turn. NoObserver else's write from before then ends it any more.
pub(crate) fn put_down(
    rule: &'static Rule,
    claim: &Claim,
    config: &Config,
    order: &ProvisionRequest,
    turn: Attempt,
) -> Write {
    let is_small = |places: &&Accessibility| places.requisite.len() + places.preferred.len() <= PLACES_MAX;
    let topology = order.topology.as_ref().ok().and_then(Option::as_ref).filter(is_small).cloned();
    let intent = Intent { provisioner: config.name.clone(), node: order.node.clone(), topology, turn };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugins_claims_are_ours_once_they_say_so() {
        let config = Config { also: vec!["kubernetes.io/aws-ebs".into()], ..Config::new("ebs.csi.aws.com") };
        let is_asked = |provisioner: &str, migrated_to: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"c","namespace":"ns","annotations":{{
                    "volume.kubernetes.io/storage-provisioner":"{provisioner}",
                    "pv.kubernetes.io/migrated-to":"{migrated_to}"}}}}}}"#
            );
            is_asked(&Claim::from_json(json.as_bytes()).expect("a claim"), &config)
        };
        assert!(is_asked("ebs.csi.aws.com", ""));
        assert!(is_asked("ebs.csi.aws.com", "ebs.csi.aws.com"));
        assert!(is_asked("kubernetes.io/aws-ebs", "ebs.csi.aws.com"));
        assert!(!is_asked("kubernetes.io/aws-ebs", ""));
        assert!(!is_asked("kubernetes.io/aws-ebs", "other"));
        assert!(!is_asked("kubernetes.io/gce-pd", "ebs.csi.aws.com"));
    }
}
