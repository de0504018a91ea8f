//! All tests of volumes, in upstream's order: restrictions, limits, claims, zones.

use bindery_cache::Cache;
use bindery_model::{Node, Pod};

use crate::limits::Limits;
use crate::restrictions::Restrictions;
use crate::zone::Zones;
use crate::{
    ClaimRejection, NodeReport, NodeVolumes, PlacementError, PodRejection, PreparedClaims, limits, prepare,
    restrictions, zone,
};

/// A pod whose volumes can be placed on nodes.
#[derive(Debug)]
pub struct VolumePlacement<'a> {
    restrictions: Restrictions<'a>,
    limits: Limits,
    claims: PreparedClaims<'a>,
    zones: Zones,
}

impl<'a> VolumePlacement<'a> {
    /// Reads a pod's volumes once, for all nodes; fails if the pod is rejected for all of them.
    pub fn prepare(cache: &'a Cache, pod: &'a Pod) -> Result<VolumePlacement<'a>, PodRejection> {
        let (placement, rejected) = VolumePlacement::survey(cache, pod);
        rejected.into_iter().next().map_or(Ok(placement), |rejected| Err(rejected.why))
    }

    /// The same, but continues without the claims because of which the pod is rejected; returns
    /// these, the most relevant first.
    pub fn survey(cache: &'a Cache, pod: &'a Pod) -> (VolumePlacement<'a>, Vec<ClaimRejection>) {
        let mut rejected = Vec::new();
        let placement = VolumePlacement {
            restrictions: restrictions::prepare(cache, pod, &mut rejected),
            limits: limits::prepare(cache, pod),
            claims: prepare::prepare(cache, pod, &mut rejected),
            zones: zone::prepare(cache, pod, &mut rejected),
        };
        (placement, rejected)
    }

    /// The volumes that a node has for the pod, and why it is not suitable: all reasons of the
    /// first test that fails.
    pub fn find(&self, node: &Node) -> Result<NodeVolumes<'_>, PlacementError> {
        let cache = self.claims.cache;
        let rejection = self.restrictions.check(cache, node).or_else(|| self.limits.check(cache, node));
        if let Some(rejection) = rejection {
            return Ok(NodeVolumes { rejections: vec![rejection], ..NodeVolumes::default() });
        }
        let mut found = self.claims.find(node)?;
        if found.rejections.is_empty() {
            found.rejections.extend(self.zones.check(node));
        }
        Ok(found)
    }

    /// The outcome of each claim on a node, and the rejections of all other tests.
    pub fn report(&self, node: &Node) -> Result<NodeReport<'_>, PlacementError> {
        let cache = self.claims.cache;
        let rejections = self.restrictions.check(cache, node).into_iter().chain(self.limits.check(cache, node));
        let rejections = rejections.chain(self.zones.check(node)).collect();
        Ok(NodeReport { claims: self.claims.outcomes(node)?, rejections })
    }

    /// What the pod must not share with other pods.
    pub fn restrictions(&self) -> &Restrictions<'a> {
        &self.restrictions
    }
}
