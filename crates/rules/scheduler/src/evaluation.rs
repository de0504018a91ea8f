//! Evaluating nodes for a pod. Scheduling and explaining use the same tests: one stops at the first
//! that fails, the other reports all.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{Claim, Node, Pod, PodKey};
use bindery_placement::{
    ClaimOutcome, ClaimRejection, NodeRejection, NodeVolumes, PlacementError, PodRejection, VolumePlacement,
    other_users,
};

use crate::fit;
use crate::pod_affinity::PodAffinity;
use crate::reason::Reason;
use crate::topology_spread::TopologySpread;

/// A pod for which nodes can be evaluated.
pub struct Evaluation<'a> {
    cache: &'a Cache,
    pod: &'a Pod,
    volumes: VolumePlacement<'a>,
    spread: TopologySpread<'a>,
    affinity: PodAffinity,
}

/// The reasons against a node up to the first test that fails, and its volumes for the pod's
/// claims.
pub(crate) struct NodeResult<'a> {
    pub reasons: Vec<Reason>,
    pub volumes: NodeVolumes<'a>,
}

/// The results of all tests of a node.
#[derive(Debug)]
pub struct NodeAssessment<'a> {
    /// The outcome for each claim, except those because of which the pod is rejected for all nodes.
    pub claims: Vec<(&'a Arc<Claim>, ClaimOutcome<'a>)>,
    /// All other reasons against the node.
    pub reasons: Vec<Reason>,
}

impl NodeAssessment<'_> {
    /// Whether the node is suitable.
    pub fn is_suitable(&self) -> bool {
        let has_failed = |outcome: &ClaimOutcome<'_>| matches!(outcome, ClaimOutcome::Failed(_));
        self.reasons.is_empty() && !self.claims.iter().any(|(_, outcome)| has_failed(outcome))
    }
}

impl<'a> Evaluation<'a> {
    /// Reads a pod once, for all nodes; fails if it is rejected for all of them.
    pub(crate) fn of(cache: &'a Cache, pod: &'a Pod) -> Result<Evaluation<'a>, PodRejection> {
        let volumes = VolumePlacement::prepare(cache, pod)?;
        Ok(Evaluation::new(cache, pod, volumes))
    }

    /// The same, but continues without the claims because of which the pod is rejected; returns
    /// these, the most relevant first.
    pub fn survey(cache: &'a Cache, pod: &'a Pod) -> (Evaluation<'a>, Vec<ClaimRejection>) {
        let (volumes, rejected) = VolumePlacement::survey(cache, pod);
        (Evaluation::new(cache, pod, volumes), rejected)
    }

    fn new(cache: &'a Cache, pod: &'a Pod, volumes: VolumePlacement<'a>) -> Evaluation<'a> {
        let (spread, affinity) = (TopologySpread::of(cache, pod), PodAffinity::of(cache, pod));
        Evaluation { cache, pod, volumes, spread, affinity }
    }

    /// Tests a node. The result has all reasons of the first test that fails.
    pub(crate) fn check(&self, node: &Node) -> Result<NodeResult<'_>, PlacementError> {
        let reasons = fit::check(self.cache, self.pod, node);
        if !reasons.is_empty() {
            return Ok(NodeResult { reasons, volumes: NodeVolumes::default() });
        }
        let mut volumes = self.volumes.find(node)?;
        let mut reasons: Vec<Reason> =
            std::mem::take(&mut volumes.rejections).into_iter().map(Reason::Volumes).collect();
        if reasons.is_empty() {
            reasons.extend(self.spread.check(node).or_else(|| self.affinity.check(node)));
        }
        Ok(NodeResult { reasons, volumes })
    }

    /// Runs all tests of a node.
    pub fn assess(&self, node: &Node) -> Result<NodeAssessment<'_>, PlacementError> {
        let volumes = self.volumes.report(node)?;
        let mut reasons = fit::check_all(self.cache, self.pod, node);
        reasons.extend(volumes.rejections.into_iter().map(Reason::Volumes));
        reasons.extend(self.spread.check(node));
        reasons.extend(self.affinity.check_all(node));
        let assessment = NodeAssessment { claims: volumes.claims, reasons };
        debug_assert_eq!(
            self.check(node).is_ok_and(|result| result.reasons.is_empty()),
            assessment.is_suitable(),
            "both ways of testing a node agree on whether it is suitable"
        );
        Ok(assessment)
    }

    /// Whether a pod could be scheduled to a node now.
    pub fn is_suitable(cache: &Cache, pod: &Pod, node: &Node) -> bool {
        let evaluation = Evaluation::of(cache, pod);
        evaluation.is_ok_and(|this| this.check(node).is_ok_and(|result| result.reasons.is_empty()))
    }

    /// The other pods that cause a reason against a node, if it is caused by pods.
    pub fn blocking_pods(&self, node: &Node, reason: &Reason) -> Vec<PodKey> {
        let keys = |pods: &mut dyn Iterator<Item = &PodKey>| pods.cloned().collect();
        match reason {
            Reason::PortInUse => keys(&mut fit::port_users(self.cache, self.pod, node)),
            Reason::AntiAffinity => keys(&mut self.affinity.excluded_by_pod(node).into_iter()),
            Reason::ExistingAntiAffinity => keys(&mut self.affinity.excluding_pod(node).into_iter()),
            Reason::Volumes(NodeRejection::DiskInUse) => {
                self.volumes.restrictions().pods_sharing_disks(self.cache, node).map(|pod| pod.key()).collect()
            }
            Reason::Volumes(NodeRejection::ClaimInUse) => {
                let own = self.pod.key();
                let used = self.volumes.restrictions().used_claims().iter();
                used.flat_map(|claim| other_users(self.cache, claim, &own)).map(|pod| pod.key()).collect()
            }
            Reason::Unschedulable
            | Reason::Tainted(_)
            | Reason::NodeAffinity { .. }
            | Reason::TooManyPods
            | Reason::Insufficient(_)
            | Reason::Affinity
            | Reason::MissingSpreadLabel(_)
            | Reason::TopologySpread(_)
            | Reason::Volumes(
                NodeRejection::VolumeUnreachable
                | NodeRejection::NoMatchingVolume
                | NodeRejection::InsufficientCapacity
                | NodeRejection::VolumeMissing
                | NodeRejection::ZoneMismatch
                | NodeRejection::TooManyVolumes
                | NodeRejection::DriverMissing(_),
            ) => Vec::new(),
        }
    }
}
