//! What is found out about a pod's claims once, before any node is looked at.
//!
//! Invariants of [`Prepared`]:
//! - Every claim of the pod is in exactly one of `bound`, `pinned` and `wanted`: bound, waiting for a volume that is made for a
//!   node which was selected before, or looking for one. Claims that are bound at once are bound, or the pod was refused.
//! - `wanted` is in the order in which claims choose: who asks for least first, so that the smallest fits are taken; then in the
//!   pod's order.
//! - All that does not depend on the node is in it: what a node is asked costs the same however many objects there are.

use std::sync::Arc;

use bindery_cache::{Candidates, VolumeRequirements};
use bindery_model::{Annotation, Claim, ClaimKey, ClaimPhase, Name, Node, Request, Volume, is_delayed};

use crate::migration::Whereabouts;
use crate::provision::Making;
use crate::{Fault, Refusal, User, View};

/// A pod's claims, ready for nodes to be asked about.
#[derive(Debug)]
pub struct Prepared<'a, V> {
    pub(crate) view: &'a V,
    /// Bound claims, in the pod's order.
    pub(crate) bound: Vec<Bound<'a>>,
    /// Claims for which a volume is to be made on a node that was selected before.
    pub(crate) pinned: Vec<Pinned<'a>>,
    /// Claims that look for a volume.
    pub(crate) wanted: Vec<Wanted<'a>>,
}

/// A claim that is bound.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub claim: &'a Arc<Claim>,
    /// The volume's name.
    pub name: &'a Name,
    /// Where the volume is, if it exists.
    pub volume: Option<Whereabouts<'a>>,
}

/// A claim for which a volume is to be made on one very node.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    pub claim: &'a Arc<Claim>,
    pub node: &'a Name,
    pub making: Making<'a>,
}

impl Pinned<'_> {
    /// Whether it is for another node than this one.
    pub fn is_elsewhere(&self, node: &Node) -> bool {
        self.node != node.name()
    }
}

/// A claim that looks for a volume.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub claim: &'a Arc<Claim>,
    pub request: Result<Request<'a>, Fault>,
    pub wish: VolumeRequirements,
    /// The free volumes that it can have, but for their capacity and the node.
    pub candidates: Candidates<'a>,
    /// Whether they are the same as those of the claim before it.
    pub is_like_previous: bool,
    /// Volumes that are reserved for it.
    pub reserved: Vec<&'a Arc<Volume>>,
    pub making: Making<'a>,
}

/// Looks at a pod's claims: why it cannot be placed on any node, if it cannot.
pub fn prepare<'a, V: View>(view: &'a V, pod: User<'_>) -> Result<Prepared<'a, V>, Refusal> {
    let mut refused = Vec::new();
    let prepared = survey(view, pod, &mut refused);
    first(refused).map_or(Ok(prepared), Err)
}

/// A claim that keeps its pod from every node, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The claim.
    pub claim: ClaimKey,
    /// Why.
    pub why: Refusal,
}

/// Why a pod is refused, of all that there is to say.
pub(crate) fn first(refused: Vec<Refused>) -> Option<Refusal> {
    refused.into_iter().next().map(|refused| refused.why)
}

/// Looks at a pod's claims. Those that keep it from every node are told of, in the order in which they count, and left out.
pub(crate) fn survey<'a, V: View>(view: &'a V, pod: User<'_>, refused: &mut Vec<Refused>) -> Prepared<'a, V> {
    let mut claims = Vec::new();
    for (key, is_own) in pod.claims() {
        match usable(view, pod, &key, is_own) {
            Ok(claim) => claims.push(claim),
            Err(why) => refused.push(Refused { claim: key, why }),
        }
    }
    let mut prepared = Prepared { view, bound: Vec::new(), pinned: Vec::new(), wanted: Vec::new() };
    let mut waiting = Vec::new();
    for claim in claims {
        if let Some(name) = claim.volume.as_ref().filter(|_| claim.is_bind_completed()) {
            let volume = view.volume(name).map(|volume| Whereabouts::of(volume));
            prepared.bound.push(Bound { claim, name, volume });
            continue;
        }
        match is_delayed(claim, |name| view.class(name)) {
            Err(problem) => refused.push(Refused { claim: claim.key(), why: Refusal::ClassUnclear(problem) }),
            Ok(true) if claim.volume.is_none() => prepared.delayed(claim),
            Ok(_) => waiting.push(claim.key()),
        }
    }
    refused.extend(waiting.into_iter().map(|claim| Refused { claim, why: Refusal::ClaimUnbound }));
    prepared.wanted.sort_by(|a, b| a.claim.requested().cmp(b.claim.requested()));
    for place in 1..prepared.wanted.len() {
        let (before, after) = prepared.wanted.split_at_mut(place);
        after[0].is_like_previous = after[0].candidates.are(&before[place - 1].candidates);
    }
    prepared
}

/// A claim that a pod may use.
fn usable<'a, V: View>(view: &'a V, pod: User<'_>, key: &ClaimKey, is_own: bool) -> Result<&'a Arc<Claim>, Refusal> {
    let name = || key.name.clone();
    let Some(claim) = view.claim(key) else {
        return Err(if is_own { Refusal::EphemeralMissing(name()) } else { Refusal::ClaimMissing(name()) });
    };
    if let Some(flaw) = &claim.flaw {
        Err(Refusal::ClaimMalformed(name(), flaw.clone()))
    } else if claim.status.phase == ClaimPhase::Lost {
        Err(Refusal::ClaimLost { claim: name(), volume: claim.volume.clone().unwrap_or_default() })
    } else if claim.deleting {
        Err(Refusal::ClaimDeleting(name()))
    } else if is_own && view.controller_of(claim) != Some(&pod.meta.uid) {
        Err(Refusal::ClaimOfAnother { claim: key.clone(), pod: pod.key() })
    } else {
        Ok(claim)
    }
}

impl<'a, V: View> Prepared<'a, V> {
    /// Takes up a claim that is bound when its pod has a node.
    fn delayed(&mut self, claim: &'a Arc<Claim>) {
        let making = Making::of(self.view, claim);
        if let Some(node) = claim.annotations.get(Annotation::SelectedNode) {
            self.pinned.push(Pinned { claim, node, making });
            return;
        }
        let request = Request::of(claim, true)
            .map_err(|problem| Fault::Selector { claim: claim.key(), problem: problem.to_owned() });
        let wish = VolumeRequirements::of(claim);
        let selector = request.as_ref().ok().and_then(|request| request.selector);
        self.wanted.push(Wanted {
            claim,
            candidates: self.view.reach().candidates(&wish, selector),
            is_like_previous: false,
            request,
            wish,
            reserved: self.view.volumes_of(&claim.key()).collect(),
            making,
        });
    }

    /// Whether all of the pod's claims are bound: there is nothing to reserve for it.
    pub fn is_bound(&self) -> bool {
        self.pinned.is_empty() && self.wanted.is_empty()
    }
}
