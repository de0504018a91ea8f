//! What is to be written for a pod on the node that was chosen, one step at a time.
//!
//! A plan is what was found for a node, kept as it was seen. Nothing else is remembered: whether a step was taken shows on the
//! objects themselves. So after a crash between any two steps the pod is simply placed again, and finds what is reserved for its
//! claims, or the node that was selected for them.

use std::fmt;
use std::sync::Arc;

use bindery_model::{Annotation, Claim, Name, Node, PodKey, Request, Volume, mismatch, reservation};
use bindery_rules_api::{ClaimEdit, Edit, RefEdit, Rule, VolumeEdit, Write};

use crate::migration::Whereabouts;
use crate::{Binding, Found, User, View, rules};

/// What is to be done for a pod on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pod: PodKey,
    pod_uid: Name,
    node: Name,
    /// Volumes that are to be pointed at claims, and the claims, as they were seen.
    bindings: Vec<(Arc<Volume>, Arc<Claim>)>,
    /// Claims for which a volume is to be made on the node, as they were seen.
    provisions: Vec<Arc<Claim>>,
}

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// This is to be written.
    Write(Box<Write>),
    /// All is written, and takes effect by and by.
    Wait,
    /// All of the pod's claims are bound.
    Done,
    /// It came otherwise: the pod is to be placed again.
    Fail(Failure),
}

/// Why a pod's claims cannot be bound as was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The pod is gone.
    PodGone(PodKey),
    /// The node is gone.
    NodeGone(Name),
    /// A volume or a claim of a binding is gone.
    BindingGone(String),
    /// A claim is gone for which a volume was to be made.
    ProvisionGone(Name),
    /// A volume cannot be reached from the node.
    Unreachable {
        /// The volume.
        volume: Name,
        /// The node.
        node: Name,
        /// How it fails to match.
        problem: String,
    },
    /// A volume does not point at its claim any more.
    Reset(Name),
    /// A claim was bound to another volume.
    Elsewhere {
        /// The claim.
        claim: Name,
        /// The volume that it was bound to.
        volume: Name,
    },
    /// The node was taken away from a claim.
    ProvisioningFailed(Name),
    /// A volume that has moved to CSI cannot be translated.
    Translation(String),
    /// What was found has changed before it could be written.
    Outdated {
        /// The object.
        key: String,
        /// Its version now.
        is: u64,
        /// Its version when it was found.
        was: u64,
    },
}

impl Plan {
    /// The plan to use what was found for a pod on a node. `None` when there is something against the node.
    pub fn new(pod: User<'_>, node: &Node, found: &Found<'_>) -> Option<Plan> {
        // Promise S6: whatever an index may say, only what fits is ever reserved.
        let fits = |binding: &Binding<'_>| {
            let request = Request::of(binding.claim, true).map(|request| request.on(&node.labels));
            request.is_ok_and(|request| request.reaches(binding.volume) && mismatch(&request, binding.volume).is_none())
        };
        let is_sound = found.obstacles.is_empty() && found.bindings.iter().all(fits);
        is_sound.then(|| Plan {
            pod: pod.key(),
            pod_uid: pod.meta.uid.clone(),
            node: node.name().clone(),
            bindings: found.bindings.iter().map(|found| (found.volume.clone(), found.claim.clone())).collect(),
            provisions: found.provisions.iter().map(|found| found.claim.clone()).collect(),
        })
    }

    /// The node that was chosen.
    pub fn node(&self) -> &Name {
        &self.node
    }

    /// Whether nothing has to be written: all claims were bound.
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty() && self.provisions.is_empty()
    }

    /// Everything that is to be written, in its order, if all that was found still is as it was seen. Whoever shows these as
    /// done, until they are, keeps others from taking the same.
    pub fn writes<V: View>(&self, view: &V) -> Result<Vec<Write>, Failure> {
        let mut writes = Vec::new();
        for (volume, claim) in &self.bindings {
            let now = view.volume(volume.name()).map(|now| now.meta.version);
            is_current(volume.name(), now, volume.meta.version)?;
            writes.extend(reserve(volume, claim));
        }
        for claim in &self.provisions {
            let key = claim.key();
            is_current(&key, view.claim(&key).map(|now| now.meta.version), claim.meta.version)?;
            writes.extend(select(claim, &self.node));
        }
        Ok(writes)
    }

    /// What is next, as things are: first the volumes that are not yet pointed at their claims, then the claims without the
    /// node; then it is awaited that all of the claims are bound.
    pub fn next<V: View>(&self, view: &V) -> Step {
        if !view.has_pod(&self.pod, &self.pod_uid) {
            return Step::Fail(Failure::PodGone(self.pod.clone()));
        }
        let Some(node) = view.node(&self.node) else { return Step::Fail(Failure::NodeGone(self.node.clone())) };
        if let Some(write) = self.unwritten(view) {
            return Step::Write(Box::new(write));
        }
        let bound = || -> Result<bool, Failure> {
            for (volume, claim) in &self.bindings {
                if !is_bound(view, node, volume, claim)? {
                    return Ok(false);
                }
            }
            for claim in &self.provisions {
                if !is_provisioned(view, node, claim)? {
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

    /// The first write that was not made: its object is just as it was seen. One that has changed since then is never written
    /// to, as somebody else may have it.
    fn unwritten<V: View>(&self, view: &V) -> Option<Write> {
        let is_unbound =
            |claim: &Claim| view.claim(&claim.key()).is_some_and(|now| now.meta == claim.meta && now.volume.is_none());
        let reserve = |(volume, claim): &(Arc<Volume>, Arc<Claim>)| {
            let now = view.volume(volume.name()).filter(|now| now.meta.version == volume.meta.version)?;
            is_unbound(claim).then(|| reserve(now, claim)).flatten()
        };
        let select = |claim: &Arc<Claim>| {
            let now = view.claim(&claim.key()).filter(|now| now.meta.version == claim.meta.version)?;
            is_unbound(now).then(|| select(now, &self.node)).flatten()
        };
        self.bindings.iter().find_map(reserve).or_else(|| self.provisions.iter().find_map(select))
    }
}

fn is_current(key: &dyn fmt::Display, is: Option<u64>, was: u64) -> Result<(), Failure> {
    match is {
        Some(is) if is == was => Ok(()),
        is => Err(Failure::Outdated { key: key.to_string(), is: is.unwrap_or_default(), was }),
    }
}

/// Points a volume at a claim.
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

/// Says on a claim for which node its volume is to be made.
fn select(claim: &Claim, node: &Name) -> Option<Write> {
    let edit = ClaimEdit { annotations: vec![(Annotation::SelectedNode, Some(node.clone()))], ..ClaimEdit::default() };
    (claim.annotations.get(Annotation::SelectedNode) != Some(node))
        .then(|| Write::claim(&rules::BIND_SELECT_NODE, claim, Edit::Claim(edit)))
}

/// Whether a claim is bound to the volume that was found for it.
fn is_bound<V: View>(view: &V, node: &Node, volume: &Volume, claim: &Claim) -> Result<bool, Failure> {
    let gone = |kind: &str, name: &Name| Failure::BindingGone(format!("{kind} \"{name}\" not found"));
    let now = view.volume(volume.name()).ok_or_else(|| gone("persistentvolume", volume.name()))?;
    let claim_now = view.claim(&claim.key()).filter(|now| now.meta == claim.meta);
    let claim_now = claim_now.ok_or_else(|| gone("persistentvolumeclaim", &claim.meta.name))?;
    is_reachable(view, node, now)?;
    if !now.belongs_to(&claim.meta.uid) {
        return Err(Failure::Reset(now.name().clone()));
    }
    match &claim_now.volume {
        Some(other) if other != now.name() => {
            Err(Failure::Elsewhere { claim: claim.meta.name.clone(), volume: other.clone() })
        }
        Some(_) => Ok(claim_now.is_bind_completed()),
        None => Ok(false),
    }
}

/// Whether a claim is bound to a volume that was made for it on the node.
fn is_provisioned<V: View>(view: &V, node: &Node, claim: &Claim) -> Result<bool, Failure> {
    let name = || claim.meta.name.clone();
    let now = view.claim(&claim.key()).filter(|now| now.meta == claim.meta);
    let now = now.ok_or_else(|| Failure::ProvisionGone(name()))?;
    if now.annotations.get(Annotation::SelectedNode) != Some(node.name()) {
        return Err(Failure::ProvisioningFailed(name()));
    }
    let Some(volume) = &now.volume else { return Ok(false) };
    // It may have been made without our having heard of it.
    let Some(volume) = view.volume(volume) else { return Ok(false) };
    is_reachable(view, node, volume)?;
    Ok(now.is_bind_completed())
}

fn is_reachable<V: View>(view: &V, node: &Node, volume: &Volume) -> Result<(), Failure> {
    let checked = Whereabouts::of(volume).check(node, || view.csi_node(node.name()).map(|csi| &**csi));
    let checked = checked.map_err(|fault| Failure::Translation(fault.to_string()))?;
    checked.map_err(|problem| Failure::Unreachable {
        volume: volume.name().clone(),
        node: node.name().clone(),
        problem,
    })
}

impl Step {
    /// Its rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Step::Write(write) => write.purpose,
            Step::Wait => &rules::BIND_WAITS,
            Step::Done => &rules::BIND_DONE,
            Step::Fail(failure) => failure.rule(),
        }
    }
}

impl Failure {
    /// Its rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Failure::PodGone(_) => &rules::BIND_POD_GONE,
            Failure::NodeGone(_) => &rules::BIND_NODE_GONE,
            Failure::BindingGone(_) | Failure::ProvisionGone(_) => &rules::BIND_GONE,
            Failure::Unreachable { .. } => &rules::BIND_UNREACHABLE,
            Failure::Reset(_) => &rules::BIND_RESET,
            Failure::Elsewhere { .. } => &rules::BIND_ELSEWHERE,
            Failure::ProvisioningFailed(_) => &rules::BIND_PROVISIONING_FAILED,
            Failure::Translation(_) => &rules::BIND_TRANSLATION,
            Failure::Outdated { .. } => &rules::BIND_OUTDATED,
        }
    }
}

/// In upstream's words, where it has any.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::PodGone(pod) => write!(f, "pod does not exist any more: pod \"{}\" not found", pod.name),
            Failure::NodeGone(node) => write!(f, "failed to get node \"{node}\": node \"{node}\" not found"),
            Failure::BindingGone(what) => write!(f, "failed to check binding: {what}"),
            Failure::ProvisionGone(claim) => {
                write!(f, "failed to check provisioning pvc: persistentvolumeclaim \"{claim}\" not found")
            }
            Failure::Unreachable { volume, node, problem } => {
                write!(f, "pv \"{volume}\" node affinity doesn't match node \"{node}\": {problem}")
            }
            Failure::Reset(volume) => write!(f, "ClaimRef got reset for pv \"{volume}\""),
            Failure::Elsewhere { claim, volume } => write!(f, "pvc \"{claim}\" was bound to another pv \"{volume}\""),
            Failure::ProvisioningFailed(claim) => write!(f, "provisioning failed for PVC \"{claim}\""),
            Failure::Translation(problem) => write!(f, "failed to translate pv to csi: {problem}"),
            Failure::Outdated { key, is, was } => {
                write!(f, "\"{key}\" is out of sync (stored: {is}, assume: {was})")
            }
        }
    }
}
