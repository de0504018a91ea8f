//! What to write for a pod on the chosen node, one step at a time.
//!
//! A plan consists of the volumes and claims that were found, in the state in which they were seen.
//! Whether a step was taken shows on the objects themselves. So after a crash between any two steps
//! the pod is placed again, and finds the volumes reserved for its claims, or the node selected for
//! them.

use std::fmt;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_matching::{MatchCriteria, mismatch, reservation};
use bindery_model::{Annotation, Claim, Name, Node, Pod, PodKey, Volume};
use bindery_rules_api::{ClaimEdit, Edit, RefEdit, VolumeEdit, Write};

use crate::migration::VolumeTopology;
use crate::{Binding, NodeVolumes, rules};

/// How to bind a pod's claims on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct BindingPlan {
    pod: PodKey,
    pod_uid: Name,
    node: Name,
    /// Volumes to reserve, each for a claim.
    bindings: Vec<(Arc<Volume>, Arc<Claim>)>,
    /// Claims for which a volume is to be provisioned.
    provisions: Vec<Arc<Claim>>,
}

/// The next step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A write to make.
    Write(Box<Write>),
    /// Everything is written; the claims are not bound yet.
    Wait,
    /// All claims are bound.
    Done,
    /// The plan cannot be carried out; the pod must be scheduled again.
    Fail(BindError),
}

/// Why a pod's claims cannot be bound as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindError {
    /// The pod no longer exists.
    PodMissing(PodKey),
    /// The node no longer exists.
    NodeMissing(Name),
    /// A volume or claim to bind no longer exists.
    BindingMissing(String),
    /// A claim to provision for no longer exists.
    ProvisionMissing(Name),
    /// The node cannot reach a volume.
    Unreachable {
        /// The volume.
        volume: Name,
        /// The node.
        node: Name,
        /// Upstream's error.
        problem: String,
    },
    /// A volume no longer refers to its claim.
    Reset(Name),
    /// A claim was bound to another volume.
    BoundElsewhere {
        /// The claim.
        claim: Name,
        /// The volume that it was bound to.
        volume: Name,
    },
    /// The selected node was removed from a claim.
    ProvisioningFailed(Name),
    /// A volume cannot be translated to CSI.
    Translation(String),
}

impl BindingPlan {
    /// The plan to use the volumes that were found on a node. `None` when the node is not suitable.
    pub fn new(pod: &Pod, node: &Node, found: &NodeVolumes<'_>) -> Option<BindingPlan> {
        // Promise S6: even if an index were wrong, only a matching volume is reserved.
        let fits = |binding: &Binding<'_>| {
            let criteria = MatchCriteria::of(binding.claim, true).map(|criteria| criteria.on(&node.labels));
            criteria
                .is_ok_and(|criteria| criteria.reaches(binding.volume) && mismatch(&criteria, binding.volume).is_none())
        };
        let is_suitable = found.rejections.is_empty() && found.bindings.iter().all(fits);
        is_suitable.then(|| BindingPlan {
            pod: pod.key(),
            pod_uid: pod.meta.uid.clone(),
            node: node.name().clone(),
            bindings: found.bindings.iter().map(|found| (found.volume.clone(), found.claim.clone())).collect(),
            provisions: found.new_volumes.iter().map(|found| found.claim.clone()).collect(),
        })
    }

    /// The next step: reserve volumes, then select the node on claims, then wait until all are
    /// bound.
    pub fn next(&self, cache: &Cache) -> Step {
        if cache.pod(&self.pod).is_none_or(|pod| pod.meta.uid != self.pod_uid) {
            return Step::Fail(BindError::PodMissing(self.pod.clone()));
        }
        let Some(node) = cache.node(&self.node) else { return Step::Fail(BindError::NodeMissing(self.node.clone())) };
        if let Some(write) = self.unwritten(cache) {
            return Step::Write(Box::new(write));
        }
        let bound = || -> Result<bool, BindError> {
            for (volume, claim) in &self.bindings {
                if !is_bound(cache, node, volume, claim)? {
                    return Ok(false);
                }
            }
            for claim in &self.provisions {
                if !is_provisioned(cache, node, claim)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match bound() {
            Ok(true) => Step::Done,
            Ok(false) => Step::Wait,
            Err(failure) => Step::Fail(failure),
        }
    }

    /// The first write that was not made yet. An object that has changed since it was found is not
    /// written, because another claim may have it.
    fn unwritten(&self, cache: &Cache) -> Option<Write> {
        let is_unbound =
            |claim: &Claim| cache.claim(&claim.key()).is_some_and(|now| now.meta == claim.meta && now.volume.is_none());
        let reserve = |(volume, claim): &(Arc<Volume>, Arc<Claim>)| {
            let now = cache.volume(volume.name()).filter(|now| now.meta.version == volume.meta.version)?;
            is_unbound(claim).then(|| reserve(now, claim)).flatten()
        };
        let select = |claim: &Arc<Claim>| {
            let now = cache.claim(&claim.key()).filter(|now| now.meta.version == claim.meta.version)?;
            is_unbound(now).then(|| select(now, &self.node)).flatten()
        };
        self.bindings.iter().find_map(reserve).or_else(|| self.provisions.iter().find_map(select))
    }
}

/// Reserves a volume for a claim.
fn reserve(volume: &Volume, claim: &Claim) -> Option<Write> {
    let reservation = reservation(volume, claim)?;
    let mark = (Annotation::BoundByController, Some(Annotation::YES));
    let edit = VolumeEdit {
        claim_ref: reservation.claim_ref.map(|claim_ref| RefEdit::Set(claim_ref, claim.meta.version)),
        annotations: reservation.mark.then_some(mark).into_iter().collect(),
        ..VolumeEdit::default()
    };
    Some(Write::volume(&rules::BIND_RESERVE, volume, Edit::Volume(edit)))
}

/// Selects the node for which the volume of a claim is to be provisioned.
fn select(claim: &Claim, node: &Name) -> Option<Write> {
    let edit = ClaimEdit { annotations: vec![(Annotation::SelectedNode, Some(node.clone()))], ..ClaimEdit::default() };
    (claim.annotations.get(Annotation::SelectedNode) != Some(node))
        .then(|| Write::claim(&rules::BIND_SELECT_NODE, claim, Edit::Claim(edit)))
}

/// Whether a claim is bound to the planned volume.
fn is_bound(cache: &Cache, node: &Node, volume: &Volume, claim: &Claim) -> Result<bool, BindError> {
    let missing = |kind: &str, name: &Name| BindError::BindingMissing(format!("{kind} \"{name}\" not found"));
    let now = cache.volume(volume.name()).ok_or_else(|| missing("persistentvolume", volume.name()))?;
    let claim_now = cache.claim(&claim.key()).filter(|now| now.meta == claim.meta);
    let claim_now = claim_now.ok_or_else(|| missing("persistentvolumeclaim", &claim.meta.name))?;
    is_reachable(cache, node, now)?;
    if !now.belongs_to(&claim.meta.uid) {
        return Err(BindError::Reset(now.name().clone()));
    }
    match &claim_now.volume {
        Some(other) if other != now.name() => {
            Err(BindError::BoundElsewhere { claim: claim.meta.name.clone(), volume: other.clone() })
        }
        Some(_) => Ok(claim_now.is_bind_completed()),
        None => Ok(false),
    }
}

/// Whether a claim is bound to a volume that was provisioned for the node.
fn is_provisioned(cache: &Cache, node: &Node, claim: &Claim) -> Result<bool, BindError> {
    let name = || claim.meta.name.clone();
    let now = cache.claim(&claim.key()).filter(|now| now.meta == claim.meta);
    let now = now.ok_or_else(|| BindError::ProvisionMissing(name()))?;
    if now.annotations.get(Annotation::SelectedNode) != Some(node.name()) {
        return Err(BindError::ProvisioningFailed(name()));
    }
    let Some(volume) = &now.volume else { return Ok(false) };
    // It may be new and not in the cache yet.
    let Some(volume) = cache.volume(volume) else { return Ok(false) };
    is_reachable(cache, node, volume)?;
    Ok(now.is_bind_completed())
}

fn is_reachable(cache: &Cache, node: &Node, volume: &Volume) -> Result<(), BindError> {
    let checked = VolumeTopology::of(volume).check(node, || cache.csi_node(node.name()).map(|csi| &**csi));
    let checked = checked.map_err(|error| BindError::Translation(error.to_string()))?;
    checked.map_err(|problem| BindError::Unreachable {
        volume: volume.name().clone(),
        node: node.name().clone(),
        problem,
    })
}

/// With upstream's messages.
impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::PodMissing(pod) => write!(f, "pod does not exist any more: pod \"{}\" not found", pod.name),
            BindError::NodeMissing(node) => write!(f, "failed to get node \"{node}\": node \"{node}\" not found"),
            BindError::BindingMissing(what) => write!(f, "failed to check binding: {what}"),
            BindError::ProvisionMissing(claim) => {
                write!(f, "failed to check provisioning pvc: persistentvolumeclaim \"{claim}\" not found")
            }
            BindError::Unreachable { volume, node, problem } => {
                write!(f, "pv \"{volume}\" node affinity doesn't match node \"{node}\": {problem}")
            }
            BindError::Reset(volume) => write!(f, "ClaimRef got reset for pv \"{volume}\""),
            BindError::BoundElsewhere { claim, volume } => {
                write!(f, "pvc \"{claim}\" was bound to another pv \"{volume}\"")
            }
            BindError::ProvisioningFailed(claim) => write!(f, "provisioning failed for PVC \"{claim}\""),
            BindError::Translation(problem) => write!(f, "failed to translate pv to csi: {problem}"),
        }
    }
}
