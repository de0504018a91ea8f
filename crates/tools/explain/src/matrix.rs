//! The table of nodes and claims of a pod that waits for a node: what each node has for each claim, and what else there is against
//! it. The nearest nodes come first, and nodes about which the same is to be said are one row.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{ClaimKey, Name, Node, Pod};
use bindery_placement::{ClaimOutcome, ClaimRejection, PlacementError};
use bindery_scheduler::{Evaluation, NodeAssessment};

use crate::{Cell, Matrix, Row, cells};

/// A pod, and all that its nodes are asked.
pub(crate) struct Asked<'a> {
    pub known: &'a Cache,
    pub pod: &'a Pod,
    pub look: Evaluation<'a>,
    /// The claims that keep it from every node.
    pub refused: Vec<ClaimRejection>,
    /// Its claims, each once, in order.
    pub claims: Vec<ClaimKey>,
}

/// A node, and what there is to say of it.
pub(crate) struct Asking<'l> {
    pub node: &'l Arc<Node>,
    pub outlook: Result<NodeAssessment<'l>, PlacementError>,
}

impl Asking<'_> {
    /// How many things stand against the node.
    pub fn obstacle_count(&self) -> usize {
        let Ok(outlook) = &self.outlook else { return usize::MAX };
        let nothing = outlook.claims.iter().filter(|(_, prospect)| matches!(prospect, ClaimOutcome::Failed(_)));
        outlook.reasons.len() + nothing.count()
    }

    /// What nodes have in common that are one row.
    fn sort(&self) -> Vec<String> {
        match &self.outlook {
            Err(fault) => vec![fault.to_string()],
            Ok(outlook) => {
                let claims = outlook.claims.iter();
                let claims = claims.map(|(claim, of)| format!("{}: {}", claim.meta.name, cells::sort_of_prospect(of)));
                claims.chain(outlook.reasons.iter().map(ToString::to_string)).collect()
            }
        }
    }
}

impl<'a> Asked<'a> {
    /// Looks at a pod.
    pub fn about(known: &'a Cache, pod: &'a Pod) -> Asked<'a> {
        let (look, refused) = Evaluation::survey(known, pod);
        let mut claims: Vec<ClaimKey> = Vec::new();
        for key in pod.claim_keys() {
            if !claims.contains(&key) {
                claims.push(key);
            }
        }
        Asked { known, pod, look, refused, claims }
    }

    /// Asks a node.
    pub fn ask<'l>(&'l self, node: &'l Arc<Node>) -> Asking<'l> {
        Asking { node, outlook: self.look.assess(node) }
    }

    /// Asks all nodes, the nearest first: with the fewest things against it, then by name.
    pub fn assess(&self) -> Vec<Asking<'_>> {
        let mut all: Vec<Asking<'_>> = self.known.nodes().map(|node| self.ask(node)).collect();
        all.sort_by(|a, b| (a.obstacle_count(), a.node.name()).cmp(&(b.obstacle_count(), b.node.name())));
        all
    }

    /// The table. `first` is the node that the pod goes to. When there are more rows than `rows_max`, nodes of one sort are one.
    pub fn matrix(&self, all: &[Asking<'_>], first: Option<&Name>, rows_max: usize) -> Matrix {
        let mut groups: Vec<(&Asking<'_>, usize)> = Vec::new();
        let mut by_sort: BTreeMap<(bool, Vec<String>), usize> = BTreeMap::new();
        for asking in all {
            let is_first = first == Some(asking.node.name());
            let is_one_each = rows_max == usize::MAX;
            let at = *by_sort.entry((is_first, asking.sort())).or_insert(groups.len());
            match groups.get_mut(at).filter(|_| !is_one_each) {
                Some((_, others)) => *others += 1,
                None => groups.push((asking, 0)),
            }
        }
        // The sort is stable: where the pod goes comes first, then whoever was nearer.
        groups.sort_by_key(|(asking, _)| first != Some(asking.node.name()));
        let hidden = groups.drain(rows_max.min(groups.len())..).map(|(_, others)| others + 1).sum();
        Matrix {
            claims: self.claims.iter().map(|claim| claim.name.to_string()).collect(),
            rows: groups.into_iter().map(|(asking, others)| self.row(asking, others)).collect(),
            hidden,
        }
    }

    /// The row of the node that the pod has: what it has for its claims. What would keep others away does not matter any more.
    pub fn of_its_node(&self, node: &Arc<Node>) -> Matrix {
        let mut row = self.row(&self.ask(node), 0);
        row.rest.clear();
        row.fits = row.claims.iter().all(|cell| cell.fits);
        Matrix { claims: self.claims.iter().map(|claim| claim.name.to_string()).collect(), rows: vec![row], hidden: 0 }
    }

    fn row(&self, asking: &Asking<'_>, others: usize) -> Row {
        let node = asking.node;
        let (claims, rest) = match &asking.outlook {
            Err(fault) => (Vec::new(), vec![fault.to_string()]),
            Ok(outlook) => {
                let claims: Vec<Cell> =
                    self.claims.iter().map(|claim| self.cell(node, others == 0, outlook, claim)).collect();
                let against = outlook.reasons.iter();
                (claims, against.map(|reason| cells::of_reason(&self.look, self.pod, node, reason)).collect())
            }
        };
        let fits = asking.outlook.is_ok() && rest.is_empty() && claims.iter().all(|cell| cell.fits);
        Row { node: node.name().to_string(), others, fits, claims, rest }
    }

    fn cell(&self, node: &Node, is_alone: bool, outlook: &NodeAssessment<'_>, claim: &ClaimKey) -> Cell {
        if let Some(refused) = self.refused.iter().find(|refused| refused.claim == *claim) {
            return Cell { fits: false, text: refused.why.to_string() };
        }
        let mut prospects = outlook.claims.iter().filter(|(of, _)| of.key() == *claim);
        let is_nothing = |prospect: &ClaimOutcome<'_>| matches!(prospect, ClaimOutcome::Failed(_));
        let worst = prospects.clone().find(|(_, of)| is_nothing(of)).or_else(|| prospects.next());
        match worst {
            None => Cell { fits: true, text: String::new() },
            Some((claim, prospect)) => Cell {
                fits: !is_nothing(prospect),
                text: cells::of_prospect(self.known, node, is_alone, claim, prospect),
            },
        }
    }
}
