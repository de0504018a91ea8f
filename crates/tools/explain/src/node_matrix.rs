//! The table of nodes and claims of a pod that waits for a node: what each node offers each claim,
//! and which other checks fail. The nodes with the fewest obstacles come first; nodes with the same
//! obstacles share a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{ClaimKey, Name, Node, Pod};
use bindery_placement::{ClaimOutcome, ClaimRejection, PlacementError};
use bindery_scheduler::{Evaluation, NodeAssessment};

use crate::{ClaimOnNode, Matrix, Row, cell_text};

/// A pod, and what is needed to evaluate nodes for it.
pub(crate) struct PodPlacement<'a> {
    pub known: &'a Cache,
    pub pod: &'a Pod,
    pub look: Evaluation<'a>,
    /// The claims that make every node unsuitable.
    pub refused: Vec<ClaimRejection>,
    /// The pod's claims in order, without duplicates.
    pub claims: Vec<ClaimKey>,
}

/// A node, and how well the pod fits there.
pub(crate) struct NodeOutlook<'l> {
    pub node: &'l Arc<Node>,
    pub outlook: Result<NodeAssessment<'l>, PlacementError>,
}

impl NodeOutlook<'_> {
    /// How many obstacles keep the pod from the node.
    pub fn obstacle_count(&self) -> usize {
        let Ok(outlook) = &self.outlook else { return usize::MAX };
        let nothing = outlook.claims.iter().filter(|(_, prospect)| matches!(prospect, ClaimOutcome::Failed(_)));
        outlook.reasons.len() + nothing.count()
    }

    /// The key that nodes sharing a row have in common.
    fn group(&self) -> Vec<String> {
        match &self.outlook {
            Err(fault) => vec![fault.to_string()],
            Ok(outlook) => {
                let claims = outlook.claims.iter();
                let claims =
                    claims.map(|(claim, of)| format!("{}: {}", claim.meta.name, cell_text::prospect_group(of)));
                claims.chain(outlook.reasons.iter().map(ToString::to_string)).collect()
            }
        }
    }
}

impl<'a> PodPlacement<'a> {
    /// Collects what is needed to evaluate nodes for a pod.
    pub fn new(known: &'a Cache, pod: &'a Pod) -> PodPlacement<'a> {
        let (look, refused) = Evaluation::survey(known, pod);
        let mut claims: Vec<ClaimKey> = Vec::new();
        for key in pod.claim_keys() {
            if !claims.contains(&key) {
                claims.push(key);
            }
        }
        PodPlacement { known, pod, look, refused, claims }
    }

    /// Evaluates one node.
    pub fn evaluate<'l>(&'l self, node: &'l Arc<Node>) -> NodeOutlook<'l> {
        NodeOutlook { node, outlook: self.look.assess(node) }
    }

    /// Evaluates all nodes; those with the fewest obstacles come first, then by name.
    pub fn evaluate_all(&self) -> Vec<NodeOutlook<'_>> {
        let mut all: Vec<NodeOutlook<'_>> = self.known.nodes().map(|node| self.evaluate(node)).collect();
        all.sort_by(|a, b| (a.obstacle_count(), a.node.name()).cmp(&(b.obstacle_count(), b.node.name())));
        all
    }

    /// The table. `first` is the node that the pod is assigned to. Nodes of one group share a row,
    /// unless `rows_max` is `usize::MAX`.
    pub fn matrix(&self, all: &[NodeOutlook<'_>], first: Option<&Name>, rows_max: usize) -> Matrix {
        let mut groups: Vec<(&NodeOutlook<'_>, usize)> = Vec::new();
        let mut by_group: BTreeMap<(bool, Vec<String>), usize> = BTreeMap::new();
        for outlook_of in all {
            let is_first = first == Some(outlook_of.node.name());
            let is_ungrouped = rows_max == usize::MAX;
            let at = *by_group.entry((is_first, outlook_of.group())).or_insert(groups.len());
            match groups.get_mut(at).filter(|_| !is_ungrouped) {
                Some((_, others)) => *others += 1,
                None => groups.push((outlook_of, 0)),
            }
        }
        // The sort is stable: the chosen node comes first, and the others keep their order.
        groups.sort_by_key(|(outlook_of, _)| first != Some(outlook_of.node.name()));
        let hidden = groups.drain(rows_max.min(groups.len())..).map(|(_, others)| others + 1).sum();
        Matrix {
            claims: self.claims.iter().map(|claim| claim.name.to_string()).collect(),
            rows: groups.into_iter().map(|(outlook_of, others)| self.row(outlook_of, others)).collect(),
            hidden,
        }
    }

    /// The table for a pod that has a node. Only its claims are shown: the other checks no longer
    /// matter.
    pub fn assigned_node(&self, node: &Arc<Node>) -> Matrix {
        let mut row = self.row(&self.evaluate(node), 0);
        row.other_reasons.clear();
        row.fits = row.claims.iter().all(|cell| cell.fits);
        Matrix { claims: self.claims.iter().map(|claim| claim.name.to_string()).collect(), rows: vec![row], hidden: 0 }
    }

    fn row(&self, outlook_of: &NodeOutlook<'_>, others: usize) -> Row {
        let node = outlook_of.node;
        let (claims, rest) = match &outlook_of.outlook {
            Err(fault) => (Vec::new(), vec![fault.to_string()]),
            Ok(outlook) => {
                let claims: Vec<ClaimOnNode> =
                    self.claims.iter().map(|claim| self.cell(node, others == 0, outlook, claim)).collect();
                let against = outlook.reasons.iter();
                (claims, against.map(|reason| cell_text::reason_text(&self.look, self.pod, node, reason)).collect())
            }
        };
        let fits = outlook_of.outlook.is_ok() && rest.is_empty() && claims.iter().all(|cell| cell.fits);
        Row { node: node.name().to_string(), similar_nodes: others, fits, claims, other_reasons: rest }
    }

    fn cell(&self, node: &Node, is_alone: bool, outlook: &NodeAssessment<'_>, claim: &ClaimKey) -> ClaimOnNode {
        if let Some(refused) = self.refused.iter().find(|refused| refused.claim == *claim) {
            return ClaimOnNode { fits: false, text: refused.why.to_string() };
        }
        let mut prospects = outlook.claims.iter().filter(|(of, _)| of.key() == *claim);
        let is_nothing = |prospect: &ClaimOutcome<'_>| matches!(prospect, ClaimOutcome::Failed(_));
        let worst = prospects.clone().find(|(_, of)| is_nothing(of)).or_else(|| prospects.next());
        match worst {
            None => ClaimOnNode { fits: true, text: String::new() },
            Some((claim, prospect)) => ClaimOnNode {
                fits: !is_nothing(prospect),
                text: cell_text::prospect_text(self.known, node, is_alone, claim, prospect),
            },
        }
    }
}
