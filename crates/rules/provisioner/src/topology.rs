//! From where a volume has to be reachable: what a driver is asked for.

use bindery_cache::Cache;
use bindery_model::{Kind, Labels, Name, Topologies};
use bindery_rules_api::{Accessibility, Failure, FailureEffect, Term};

use crate::TopologyConfig;
use crate::spread::offset;

/// What to ask a driver for, by where its volumes may be made, the claim's name, and the node that was chosen, if any.
pub(crate) fn of(
    known: &Cache,
    driver: &Name,
    allowed: &Topologies,
    claim: &str,
    node: Option<&Name>,
    how: TopologyConfig,
) -> Result<Option<Accessibility>, Failure> {
    let chosen = node.map(|node| Chosen::find(known, driver, node)).transpose()?;
    let allowed_terms = flatten(allowed);
    let requisite = match &chosen {
        Some(chosen) if how.strict => {
            chosen.check(&allowed_terms)?;
            vec![chosen.term.clone()]
        }
        Some(_) | None if !allowed.is_empty() => allowed_terms,
        None if !how.immediate => return Ok(None),
        Some(chosen) => everywhere(known, &chosen.keys)?,
        None => everywhere(known, &keys_of_any(known, driver)?)?,
    };
    let requisite = sorted(requisite);
    if requisite.is_empty() {
        return Ok(None);
    }
    let preferred = match &chosen {
        None => turned(&requisite, offset(claim) as usize % requisite.len()),
        Some(_) if how.strict => requisite.clone(),
        Some(chosen) => match requisite.iter().position(|term| is_subset(term, &chosen.term)) {
            Some(first) => turned(&requisite, first),
            None => {
                return Err(untried(format!(
                    "topology {} from selected node {:?} is not in requisite: {}",
                    show(&chosen.term),
                    chosen.node.as_str(),
                    show_all(&requisite),
                )));
            }
        },
    };
    Ok(Some(Accessibility { requisite, preferred }))
}

/// The node that was chosen: what tells where it is, and where that is.
struct Chosen<'a> {
    node: &'a Name,
    keys: Vec<Name>,
    term: Term,
}

impl Chosen<'_> {
    fn find<'a>(known: &Cache, driver: &Name, node: &'a Name) -> Result<Chosen<'a>, Failure> {
        let Some(csi_node) = known.csi_node(node) else {
            let error =
                format!("failed to get selected CSINode {node}: csinode.storage.k8s.io {:?} not found", node.as_str());
            return Err(Failure::new(error).with(FailureEffect::Elsewhere));
        };
        let keys: Vec<Name> = csi_node.driver(driver).map(|driver| driver.topology_keys.to_vec()).unwrap_or_default();
        if keys.is_empty() {
            return Err(untried(format!("no topology key found for node {node}")));
        }
        let Some(found) = known.node(node) else {
            return Err(untried(format!("error getting node {node}: node {:?} not found", node.as_str())));
        };
        match term(&found.labels, &keys) {
            Some(term) => Ok(Chosen { node, keys, term }),
            None => Err(untried(format!("topology labels from selected node {node} are missing one of {keys:?}"))),
        }
    }

    /// Whether volumes may be made for the node.
    fn check(&self, allowed: &[Term]) -> Result<(), Failure> {
        if allowed.is_empty() || allowed.iter().any(|term| is_subset(term, &self.term)) {
            return Ok(());
        }
        Err(untried(format!(
            "selected node '{:?}' topology '{}' is not in allowed topologies: {}",
            self.node.as_str(),
            show(&self.term),
            show_all(allowed),
        )))
    }
}

fn untried(error: String) -> Failure {
    Failure::new(format!("error generating accessibility requirements: {error}")).with(FailureEffect::Untried)
}

/// Where a node is, if it has all labels that tell.
fn term(labels: &Labels, keys: &[Name]) -> Option<Term> {
    let mut term =
        keys.iter().map(|key| labels.get(key).map(|value| (key.clone(), value.clone()))).collect::<Option<Term>>()?;
    term.sort();
    term.dedup();
    Some(term)
}

/// Everywhere that a node is.
fn everywhere(known: &Cache, keys: &[Name]) -> Result<Vec<Term>, Failure> {
    let terms: Vec<Term> = known.nodes().filter_map(|node| term(&node.labels, keys)).collect();
    if terms.is_empty() {
        return Err(untried("topology is not supported by any node".into()));
    }
    Ok(terms)
}

/// What tells where nodes are, by the first node that has the driver.
fn keys_of_any(known: &Cache, driver: &Name) -> Result<Vec<Name>, Failure> {
    let mut nodes = known.keys(Kind::CsiNode);
    nodes.sort_unstable();
    let keys =
        nodes.iter().filter_map(|key| known.csi_node(&key.name)?.driver(driver)).map(|found| &found.topology_keys);
    let found = keys.into_iter().find(|keys| !keys.is_empty()).map(|keys| keys.to_vec());
    found.ok_or_else(|| untried("no available topology found".into()))
}

/// The places that a class allows: one for each way to choose a value of every label.
fn flatten(allowed: &Topologies) -> Vec<Term> {
    let mut all = Vec::new();
    for term in allowed.terms() {
        let mut ways: Vec<Term> = vec![Vec::new()];
        for demand in term {
            let with = |way: &Term| {
                demand
                    .values()
                    .iter()
                    .map(|value| {
                        let mut longer = way.clone();
                        longer.push((demand.key().clone(), value.clone()));
                        longer
                    })
                    .collect::<Vec<_>>()
            };
            ways = ways.iter().flat_map(with).collect();
        }
        all.extend(ways.into_iter().filter(|way| !way.is_empty()).map(|mut way| {
            way.sort();
            way
        }));
    }
    all
}

/// The shortest first, then in order, each once.
fn sorted(mut terms: Vec<Term>) -> Vec<Term> {
    terms.retain(|term| !term.is_empty());
    terms.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    terms.dedup();
    terms
}

fn turned(terms: &[Term], by: usize) -> Vec<Term> {
    let mut terms = terms.to_vec();
    terms.rotate_left(by);
    terms
}

fn is_subset(term: &Term, of: &Term) -> bool {
    term.iter().all(|label| of.contains(label))
}

/// As upstream shows it: `[{key value} {key value}]`.
fn show(term: &Term) -> String {
    let labels: Vec<String> = term.iter().map(|(key, value)| format!("{{{key} {value}}}")).collect();
    format!("[{}]", labels.join(" "))
}

fn show_all(terms: &[Term]) -> String {
    let terms: Vec<String> = terms.iter().map(show).collect();
    format!("[{}]", terms.join(" "))
}
