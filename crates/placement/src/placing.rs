//! All tests of volumes together, in upstream's order: what must not be shared, how many there can be, claims, zones.

use bindery_volumes::Node;

use crate::limits::Limits;
use crate::restrictions::Restrictions;
use crate::zone::Zones;
use crate::{Fault, Found, Prepared, Refusal, User, View, limits, prepare, restrictions, zone};

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
        Ok(Placing {
            restrictions: restrictions::prepare(view, pod)?,
            limits: limits::prepare(view, pod),
            claims: prepare(view, pod)?,
            zones: zone::prepare(view, pod)?,
        })
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

    /// Whether all of the pod's claims are bound: there is nothing to reserve for it.
    pub fn is_bound(&self) -> bool {
        self.claims.is_bound()
    }
}
