//! What may go with a node that is gone. Pure: it looks at objects as JSON, as they were read, and says what follows.

use std::collections::BTreeSet;

use bindery_rules_api::Rule;
use serde_json::Value;

use crate::discover::HOST_LABEL;
use crate::rules::orphans as rules;

/// The nodes there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodes(BTreeSet<String>);

impl Nodes {
    /// Takes in nodes: each is known by its name, and by what its label says its host's name is.
    pub fn new<'a>(nodes: impl IntoIterator<Item = &'a Value>) -> Nodes {
        let names = |node: &'a Value| {
            let host = node["metadata"]["labels"][HOST_LABEL].as_str();
            [node["metadata"]["name"].as_str(), host].into_iter().flatten().map(str::to_owned)
        };
        Nodes(nodes.into_iter().flat_map(names).collect())
    }

    fn has_any(&self, names: &BTreeSet<String>) -> bool {
        !self.0.is_disjoint(names)
    }
}

/// What may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Orphan {
    /// Nothing.
    Nothing,
    /// The volume's claim, if it is still what the volume says.
    Claim,
    /// The volume.
    Volume,
}

/// What was found about a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// What may go.
    pub orphan: Orphan,
}

impl Judgement {
    fn new(rule: &'static Rule, orphan: Orphan) -> Judgement {
        Judgement { rule, orphan }
    }
}

/// The hosts that a volume can be reached from, by their names; `None` where it does not say so by their names alone.
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

/// Whether a text can be the name of a node or of a host: then it can be asked for.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !matches!(text, "." | "..") && text.chars().all(is_plain)
}

/// What may go of a volume, by the nodes there are.
pub fn judge(volume: &Value, classes: &BTreeSet<String>, nodes: &Nodes) -> Judgement {
    let spec = &volume["spec"];
    let is_chosen = spec["storageClassName"].as_str().is_some_and(|class| classes.contains(class));
    if spec["local"].is_null() || !is_chosen {
        return Judgement::new(&rules::NOT_CHOSEN, Orphan::Nothing);
    }
    let Some(hosts) = hosts(volume) else { return Judgement::new(&rules::NO_NODE_NAMED, Orphan::Nothing) };
    if nodes.has_any(&hosts) {
        return Judgement::new(&rules::NODE_LIVES, Orphan::Nothing);
    }
    if !volume["metadata"]["deletionTimestamp"].is_null() {
        return Judgement::new(&rules::KEPT, Orphan::Nothing);
    }
    let phase = volume["status"]["phase"].as_str().unwrap_or_default();
    let deletes = spec["persistentVolumeReclaimPolicy"] == "Delete";
    let has_claim = spec["claimRef"]["uid"].as_str().is_some_and(|uid| !uid.is_empty());
    match phase {
        "Available" => Judgement::new(&rules::DELETE_VOLUME, Orphan::Volume),
        "Released" if deletes => Judgement::new(&rules::DELETE_VOLUME, Orphan::Volume),
        "Bound" if has_claim => Judgement::new(&rules::DELETE_CLAIM, Orphan::Claim),
        _ => Judgement::new(&rules::KEPT, Orphan::Nothing),
    }
}

/// What may go of a volume's claim, as it was read.
pub fn judge_claim(volume: &Value, claim: Option<&Value>) -> Judgement {
    let gone = Judgement::new(&rules::CLAIM_GONE, Orphan::Nothing);
    let Some(claim) = claim else { return gone };
    if claim["metadata"]["uid"] != volume["spec"]["claimRef"]["uid"] {
        return gone;
    }
    if !claim["metadata"]["deletionTimestamp"].is_null() {
        return gone;
    }
    if claim["spec"]["volumeName"] != volume["metadata"]["name"] {
        return Judgement::new(&rules::CLAIM_ELSEWHERE, Orphan::Nothing);
    }
    Judgement::new(&rules::DELETE_CLAIM, Orphan::Claim)
}
