//! The topology requirement of a request: the segments that a volume must be accessible from.

use bindery_cache::Cache;
use bindery_model::{Kind, Labels, Name, Topologies};
use bindery_rules_api::{Accessibility, Failure, FailureEffect, Term};

use crate::TopologyConfig;
use crate::spread::offset;

/// The requirement for a claim, from the class's allowed topologies and the selected node, if any.
pub(crate) fn requirement(
    known: &Cache,
    driver: &Name,
    allowed: &Topologies,
    claim: &str,
    node: Option<&Name>,
    config: TopologyConfig,
) -> Result<Option<Accessibility>, Failure> {
    let selected = node.map(|node| SelectedNode::find(known, driver, node)).transpose()?;
    let allowed_terms = flatten(allowed);
    let requisite = match &selected {
        Some(selected) if config.strict => {
            selected.check(&allowed_terms)?;
            vec![selected.term.clone()]
        }
        Some(_) | None if !allowed.is_empty() => allowed_terms,
        None if !config.immediate => return Ok(None),
        Some(selected) => segments_of_all_nodes(known, &selected.keys)?,
        None => segments_of_all_nodes(known, &keys_of_any(known, driver)?)?,
    };
    let requisite = sorted(requisite);
    if requisite.is_empty() {
        return Ok(None);
    }
    let preferred = match &selected {
        None => rotated(&requisite, offset(claim) as usize % requisite.len()),
        Some(_) if config.strict => requisite.clone(),
        Some(selected) => match requisite.iter().position(|term| is_subset(term, &selected.term)) {
            Some(first) => rotated(&requisite, first),
            None => {
                return Err(not_attempted(format!(
                    "topology {} from selected node {:?} is not in requisite: {}",
                    show(&selected.term),
                    selected.node.as_str(),
                    show_all(&requisite),
                )));
            }
        },
    };
    Ok(Some(Accessibility { requisite, preferred }))
}

/// The node that the scheduler selected, with its topology.
struct SelectedNode<'a> {
    node: &'a Name,
    keys: Vec<Name>,
    term: Term,
}

impl SelectedNode<'_> {
    fn find<'a>(known: &Cache, driver: &Name, node: &'a Name) -> Result<SelectedNode<'a>, Failure> {
        let Some(csi_node) = known.csi_node(node) else {
            let error =
                format!("failed to get selected CSINode {node}: csinode.storage.k8s.io {:?} not found", node.as_str());
            return Err(Failure::new(error).with(FailureEffect::Reschedule));
        };
        let keys: Vec<Name> = csi_node.driver(driver).map(|driver| driver.topology_keys.to_vec()).unwrap_or_default();
        if keys.is_empty() {
            return Err(not_attempted(format!("no topology key found for node {node}")));
        }
        let Some(found) = known.node(node) else {
            return Err(not_attempted(format!("error getting node {node}: node {:?} not found", node.as_str())));
        };
        match term(&found.labels, &keys) {
            Some(term) => Ok(SelectedNode { node, keys, term }),
            None => {
                Err(not_attempted(format!("topology labels from selected node {node} are missing one of {keys:?}")))
            }
        }
    }

    /// Checks that the class allows the node's segment.
    fn check(&self, allowed: &[Term]) -> Result<(), Failure> {
        if allowed.is_empty() || allowed.iter().any(|term| is_subset(term, &self.term)) {
            return Ok(());
        }
        Err(not_attempted(format!(
            "selected node '{:?}' topology '{}' is not in allowed topologies: {}",
            self.node.as_str(),
            show(&self.term),
            show_all(allowed),
        )))
    }
}

fn not_attempted(error: String) -> Failure {
    Failure::new(format!("error generating accessibility requirements: {error}")).with(FailureEffect::NotAttempted)
}

/// A node's segment, if the node has a label for every key.
fn term(labels: &Labels, keys: &[Name]) -> Option<Term> {
    let mut term =
        keys.iter().map(|key| labels.get(key).map(|value| (key.clone(), value.clone()))).collect::<Option<Term>>()?;
    term.sort();
    term.dedup();
    Some(term)
}

/// The segments of all nodes.
fn segments_of_all_nodes(known: &Cache, keys: &[Name]) -> Result<Vec<Term>, Failure> {
    let terms: Vec<Term> = known.nodes().filter_map(|node| term(&node.labels, keys)).collect();
    if terms.is_empty() {
        return Err(not_attempted("topology is not supported by any node".into()));
    }
    Ok(terms)
}

/// The driver's topology keys, from the first node that has the driver.
fn keys_of_any(known: &Cache, driver: &Name) -> Result<Vec<Name>, Failure> {
    let mut nodes = known.keys(Kind::CsiNode);
    nodes.sort_unstable();
    let keys =
        nodes.iter().filter_map(|key| known.csi_node(&key.name)?.driver(driver)).map(|found| &found.topology_keys);
    let found = keys.into_iter().find(|keys| !keys.is_empty()).map(|keys| keys.to_vec());
    found.ok_or_else(|| not_attempted("no available topology found".into()))
}

/// The segments that a class allows: one for each combination of its labels' values.
fn flatten(allowed: &Topologies) -> Vec<Term> {
    let mut all = Vec::new();
    for term in allowed.terms() {
        let mut combinations: Vec<Term> = vec![Vec::new()];
        for demand in term {
            let with = |combination: &Term| {
                demand
                    .values()
                    .iter()
                    .map(|value| {
                        let mut longer = combination.clone();
                        longer.push((demand.key().clone(), value.clone()));
                        longer
                    })
                    .collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(with).collect();
        }
        all.extend(combinations.into_iter().filter(|combination| !combination.is_empty()).map(|mut combination| {
            combination.sort();
            combination
        }));
    }
    all
}

/// Sorted by length, then by value, without duplicates.
fn sorted(mut terms: Vec<Term>) -> Vec<Term> {
    terms.retain(|term| !term.is_empty());
    terms.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    terms.dedup();
    terms
}

fn rotated(terms: &[Term], by: usize) -> Vec<Term> {
    let mut terms = terms.to_vec();
    terms.rotate_left(by);
    terms
}

fn is_subset(term: &Term, of: &Term) -> bool {
    term.iter().all(|label| of.contains(label))
}

/// Formats a segment as upstream does: `[{key value} {key value}]`.
fn show(term: &Term) -> String {
    let labels: Vec<String> = term.iter().map(|(key, value)| format!("{{{key} {value}}}")).collect();
    format!("[{}]", labels.join(" "))
}

fn show_all(terms: &[Term]) -> String {
    let terms: Vec<String> = terms.iter().map(show).collect();
    format!("[{}]", terms.join(" "))
}
