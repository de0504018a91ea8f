//! Decides what to delete after a node was deleted. Pure: the input is objects as JSON.

use std::collections::BTreeSet;

use bindery_rules_api::Rule;
use serde_json::Value;

use crate::discover::HOST_LABEL;
use crate::rules::deleted_node as rules;

/// The existing nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingNodes(BTreeSet<String>);

impl ExistingNodes {
    /// Indexes nodes by name and by host name label.
    pub fn new<'a>(nodes: impl IntoIterator<Item = &'a Value>) -> ExistingNodes {
        let names = |node: &'a Value| {
            let host = node["metadata"]["labels"][HOST_LABEL].as_str();
            [node["metadata"]["name"].as_str(), host].into_iter().flatten().map(str::to_owned)
        };
        ExistingNodes(nodes.into_iter().flat_map(names).collect())
    }

    fn has_any(&self, names: &BTreeSet<String>) -> bool {
        !self.0.is_disjoint(names)
    }
}

/// What to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing.
    Nothing,
    /// The volume's claim.
    DeleteClaim,
    /// The volume.
    DeleteVolume,
}

/// The decision about a volume or claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// What to delete.
    pub cleanup: Cleanup,
}

impl Decision {
    fn new(rule: &'static Rule, cleanup: Cleanup) -> Decision {
        Decision { rule, cleanup }
    }
}

/// The hosts that can access a volume; `None` if its node affinity does not list them by name.
pub fn hosts(volume: &Value) -> Option<BTreeSet<String>> {
    let terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array()?;
    let mut all = BTreeSet::new();
    for term in terms {
        let expressions = term["matchExpressions"].as_array()?;
        let by_host = |expression: &&Value| expression["key"] == HOST_LABEL && expression["operator"] == "In";
        let values = |expression: &Value| -> Option<BTreeSet<String>> {
            let values = expression["values"].as_array()?.iter();
            values.map(|value| value.as_str().filter(|host| is_name(host)).map(str::to_owned)).collect()
        };
        let mut of_term: Option<BTreeSet<String>> = None;
        for expression in expressions.iter().filter(by_host) {
            let values = values(expression)?;
            of_term = Some(of_term.map_or(values.clone(), |known| known.intersection(&values).cloned().collect()));
        }
        all.extend(of_term?);
    }
    Some(all).filter(|all| !all.is_empty())
}

/// Whether it is a valid node or host name, and safe in a URL.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !matches!(text, "." | "..") && text.chars().all(is_plain)
}

/// Decides about a volume, given the existing nodes.
pub fn decide_volume(volume: &Value, classes: &BTreeSet<String>, nodes: &ExistingNodes) -> Decision {
    let spec = &volume["spec"];
    let is_selected = spec["storageClassName"].as_str().is_some_and(|class| classes.contains(class));
    if spec["local"].is_null() || !is_selected {
        return Decision::new(&rules::CLASS_NOT_SELECTED, Cleanup::Nothing);
    }
    let Some(hosts) = hosts(volume) else { return Decision::new(&rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing) };
    if nodes.has_any(&hosts) {
        return Decision::new(&rules::NODE_EXISTS, Cleanup::Nothing);
    }
    if !volume["metadata"]["deletionTimestamp"].is_null() {
        return Decision::new(&rules::VOLUME_KEPT, Cleanup::Nothing);
    }
    let phase = volume["status"]["phase"].as_str().unwrap_or_default();
    let deletes = spec["persistentVolumeReclaimPolicy"] == "Delete";
    let has_claim = spec["claimRef"]["uid"].as_str().is_some_and(|uid| !uid.is_empty());
    match phase {
        "Available" => Decision::new(&rules::DELETE_VOLUME, Cleanup::DeleteVolume),
        "Released" if deletes => Decision::new(&rules::DELETE_VOLUME, Cleanup::DeleteVolume),
        "Bound" if has_claim => Decision::new(&rules::DELETE_CLAIM, Cleanup::DeleteClaim),
        _ => Decision::new(&rules::VOLUME_KEPT, Cleanup::Nothing),
    }
}

/// Decides about a volume's claim, as it was read.
pub fn decide_claim(volume: &Value, claim: Option<&Value>) -> Decision {
    let deleted = Decision::new(&rules::CLAIM_DELETED, Cleanup::Nothing);
    let Some(claim) = claim else { return deleted };
    if claim["metadata"]["uid"] != volume["spec"]["claimRef"]["uid"] {
        return deleted;
    }
    if !claim["metadata"]["deletionTimestamp"].is_null() {
        return deleted;
    }
    if claim["spec"]["volumeName"] != volume["metadata"]["name"] {
        return Decision::new(&rules::CLAIM_BOUND_ELSEWHERE, Cleanup::Nothing);
    }
    Decision::new(&rules::DELETE_CLAIM, Cleanup::DeleteClaim)
}
