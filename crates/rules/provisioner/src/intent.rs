//! The provisioning intent: an annotation with a finalizer, recorded on a claim before its storage
//! is created.

use bindery_model::migration::Plugin;
use bindery_model::{Annotation, Claim, Name, finalizer};
use bindery_rules_api::{Accessibility, Attempt, ClaimEdit, Edit, ProvisionRequest, Rule, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Config;

/// The most topology segments that an intent stores, because annotations are limited in size. With
/// more, the topology is computed again.
const SEGMENTS_MAX: usize = 200;

/// What is recorded on a claim before storage is created for it. After a crash, it shows that
/// storage may exist, and with which parameters the call must be repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intent {
    /// The provisioner that is about to call its storage.
    pub provisioner: Name,
    /// The selected node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// The required topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Accessibility>,
    /// The latest attempt.
    pub attempt: Attempt,
}

impl Intent {
    /// Parses the annotation; `None` if it is not an intent.
    pub fn parse(text: &str) -> Option<Intent> {
        serde_json::from_str(text).ok()
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// Whether a request's attempt is still the latest one recorded on the claim, which was just read.
/// If not, another instance has called the storage since, or knows the outcome. A request without
/// an attempt, as for in-tree provisioning, is always current.
pub fn is_current(request: &ProvisionRequest, claim: &Value) -> bool {
    if request.attempt.is_none() {
        return true;
    }
    let mut finalizers = claim["metadata"]["finalizers"].as_array().into_iter().flatten();
    let text = claim["metadata"]["annotations"][Annotation::Provisioning.key()].as_str();
    let attempt = text.and_then(Intent::parse).map(|intent| intent.attempt);
    finalizers.any(|name| *name == *finalizer::PROVISIONING) && attempt == request.attempt
}

/// The intent on a claim, if it belongs to this provisioner.
pub(crate) fn of(claim: &Claim, config: &Config) -> Option<Intent> {
    let has_finalizer = claim.finalizers.iter().any(|name| name == finalizer::PROVISIONING);
    let text = claim.annotations.get(Annotation::Provisioning);
    match text.and_then(|text| Intent::parse(text)) {
        Some(intent) => {
            let is_ours = config.has_name(&intent.provisioner) && config.serves_node(intent.node.as_ref());
            is_ours.then_some(intent)
        }
        // The annotation was overwritten: the provisioner that the claim names takes over.
        None => {
            let is_ours = is_requested(claim, config) && config.serves_node(selected_node(claim));
            (has_finalizer && is_ours).then(Intent::default)
        }
    }
}

/// The node that the scheduler selected for a claim.
pub(crate) fn selected_node(claim: &Claim) -> Option<&Name> {
    claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty())
}

/// Whether a claim requests its volume from this provisioner. If it does so by the name of an
/// in-tree plugin, it must be annotated as migrated; otherwise the plugin may provision it, too.
pub(crate) fn is_requested(claim: &Claim, config: &Config) -> bool {
    let annotation = |annotation| claim.annotations.get(annotation);
    let named = annotation(Annotation::StorageProvisioner).or_else(|| annotation(Annotation::BetaStorageProvisioner));
    let is_migrated = || annotation(Annotation::MigratedTo) == Some(&config.name);
    named.is_some_and(|name| config.has_name(name) && (Plugin::named(name).is_none() || is_migrated()))
}

/// The attempt in which prepared parameters are used: the one after the attempt seen when they were
/// prepared.
pub(crate) fn next_attempt(config: &Config, prepared: &Value) -> Attempt {
    let number = prepared["attempt"]["number"].as_u64().unwrap_or_default().saturating_add(1);
    Attempt { instance: config.instance.clone(), number }
}

/// Records an intent, or a new attempt in it. From then on, no late write for an earlier attempt
/// can remove the intent.
pub(crate) fn record(
    rule: &'static Rule,
    claim: &Claim,
    config: &Config,
    request: &ProvisionRequest,
    attempt: Attempt,
) -> Write {
    let is_small = |topology: &&Accessibility| topology.requisite.len() + topology.preferred.len() <= SEGMENTS_MAX;
    let topology = request.topology.as_ref().ok().and_then(Option::as_ref).filter(is_small).cloned();
    let intent = Intent { provisioner: config.name.clone(), node: request.node.clone(), topology, attempt };
    let mut finalizers: Vec<Name> = other_finalizers(claim);
    finalizers.push(Name::new_static(finalizer::PROVISIONING));
    let edit = ClaimEdit {
        annotations: vec![(Annotation::Provisioning, Some(intent.to_string().into()))],
        finalizers: Some(finalizers.into()),
        ..ClaimEdit::default()
    };
    Write::claim(rule, claim, Edit::Claim(edit))
}

/// Removes the intent from a claim, and the selected node if the scheduler must select another.
pub(crate) fn remove(rule: &'static Rule, claim: &Claim, and_selected_node: bool) -> Write {
    let mut annotations = vec![(Annotation::Provisioning, None)];
    if and_selected_node {
        annotations.push((Annotation::SelectedNode, None));
    }
    let edit = ClaimEdit { annotations, finalizers: Some(other_finalizers(claim).into()), ..ClaimEdit::default() };
    Write::claim(rule, claim, Edit::Claim(edit))
}

fn other_finalizers(claim: &Claim) -> Vec<Name> {
    claim.finalizers.iter().filter(|name| **name != finalizer::PROVISIONING).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_of_an_in_tree_plugin_is_ours_once_migrated() {
        let config = Config { aliases: vec!["kubernetes.io/aws-ebs".into()], ..Config::new("ebs.csi.aws.com") };
        let is_requested = |provisioner: &str, migrated_to: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"c","namespace":"ns","annotations":{{
                    "volume.kubernetes.io/storage-provisioner":"{provisioner}",
                    "pv.kubernetes.io/migrated-to":"{migrated_to}"}}}}}}"#
            );
            is_requested(&Claim::from_json(json.as_bytes()).expect("a claim"), &config)
        };
        assert!(is_requested("ebs.csi.aws.com", ""));
        assert!(is_requested("ebs.csi.aws.com", "ebs.csi.aws.com"));
        assert!(is_requested("kubernetes.io/aws-ebs", "ebs.csi.aws.com"));
        assert!(!is_requested("kubernetes.io/aws-ebs", ""));
        assert!(!is_requested("kubernetes.io/aws-ebs", "other"));
        assert!(!is_requested("kubernetes.io/gce-pd", "ebs.csi.aws.com"));
    }
}
