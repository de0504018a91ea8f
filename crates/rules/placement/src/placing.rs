//! All tests of volumes together, in upstream's order: what must not be shared, how many there can be, claims, zones.

use bindery_model::Node;

use crate::limits::Limits;
use crate::restrictions::Restrictions;
use crate::zone::Zones;
use crate::{Fault, Found, Outlook, Prepared, Refusal, Refused, User, View, limits, prepare, restrictions, zone};

/// A pod, ready for nodes to be asked about.
#[derive(Debug)]
pub struct Placing<'a, V> {
    restrictions: Restrictions<'a>,
    limits: Limits,
    claims: Prepared<'a, V>,
    zones: Zones,
}

impl<'a, V: View> Placing<'a, V> {
    /// Looks at a pod's volumes once: why it cannot be placed on any node, if it cannot.
    pub fn prepare(view: &'a V, pod: User<'a>) -> Result<Placing<'a, V>, Refusal> {
        let (placing, refused) = Placing::survey(view, pod);
        prepare::first(refused).map_or(Ok(placing), Err)
    }

    /// The same, and goes on with the other claims where some keep the pod from every node: they are told of, in the order in
    /// which they count.
    pub fn survey(view: &'a V, pod: User<'a>) -> (Placing<'a, V>, Vec<Refused>) {
        let mut refused = Vec::new();
        let placing = Placing {
            restrictions: restrictions::survey(view, pod, &mut refused),
            limits: limits::prepare(view, pod),
            claims: prepare::survey(view, pod, &mut refused),
            zones: zone::survey(view, pod, &mut refused),
        };
        (placing, refused)
    }

    /// What a node has for the pod, and what stands against the node: the first test that has anything against it tells all
    /// that it has.
    pub fn find(&self, node: &Node) -> Result<Found<'_>, Fault> {
        let view = self.claims.view;
        let before = self.restrictions.check(view, node).or_else(|| self.limits.check(view, node));
        if let Some(obstacle) = before {
            return Ok(Found { obstacles: vec![obstacle], ..Found::default() });
        }
        let mut found = self.claims.find(node)?;
        if found.obstacles.is_empty() {
            found.obstacles.extend(self.zones.check(node));
        }
        Ok(found)
    }

    /// What a node has for each of the pod's claims, whatever there is against the node; and all that there is against it beside.
    pub fn outlook(&self, node: &Node) -> Result<Outlook<'_>, Fault> {
        let view = self.claims.view;
        let beside = self.restrictions.check(view, node).into_iter().chain(self.limits.check(view, node));
        let beside = beside.chain(self.zones.check(node)).collect();
        Ok(Outlook { claims: self.claims.prospects(node)?, beside })
    }

    /// What the pod must not share.
    pub fn restrictions(&self) -> &Restrictions<'a> {
        &self.restrictions
    }

    /// Whether all of the pod's claims are bound: there is nothing to reserve for it.
    pub fn is_bound(&self) -> bool {
        self.claims.is_bound()
    }
}
