//! What is found out about a pod's claims once, before any node is looked at.
//!
//! Invariants of [`Prepared`]:
//! - Every claim of the pod is in exactly one of `bound`, `pinned` and `wanted`: bound, waiting for a volume that is made for a
//!   node which was selected before, or looking for one. Claims that are bound at once are bound, or the pod was refused.
//! - `wanted` is in the order in which claims choose: who asks for least first, so that the smallest fits are taken; then in the
//!   pod's order.
//! - All that does not depend on the node is in it: what a node is asked costs the same however many objects there are.

use std::sync::Arc;

use bindery_mirror::{Candidates, Wish};
use bindery_volumes::{Annotation, Claim, ClaimKey, ClaimPhase, Name, Request, Volume, is_delayed};

use crate::migration::Whereabouts;
use crate::provision::Making;
use crate::{Fault, Refusal, User, View};

/// A pod's claims, ready for nodes to be asked about.
#[derive(Debug)]
pub struct Prepared<'a, V> {
    pub(crate) view: &'a V,
    /// The volumes of bound claims, as far as they exist, in the pod's order.
    pub(crate) bound: Vec<Option<Whereabouts<'a>>>,
    /// Claims for which a volume is to be made on a node that was selected before.
    pub(crate) pinned: Vec<Pinned<'a>>,
    /// Claims that look for a volume.
    pub(crate) wanted: Vec<Wanted<'a>>,
}

/// A claim for which a volume is to be made on one very node.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    pub node: &'a Name,
    pub making: Making<'a>,
}

/// A claim that looks for a volume.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub claim: &'a Arc<Claim>,
    pub request: Result<Request<'a>, Fault>,
    pub wish: Wish,
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
    let mut claims = Vec::new();
    for (key, is_own) in pod.claims() {
        claims.push(usable(view, pod, &key, is_own)?);
    }
    let mut prepared = Prepared { view, bound: Vec::new(), pinned: Vec::new(), wanted: Vec::new() };
    let mut is_waiting = false;
    for claim in claims {
        if let Some(volume) = claim.volume.as_ref().filter(|_| claim.is_bind_completed()) {
            prepared.bound.push(view.volume(volume).map(|volume| Whereabouts::of(volume)));
        } else if is_delayed(claim, |name| view.class(name)).map_err(Refusal::ClassUnclear)? && claim.volume.is_none() {
            prepared.delayed(claim);
        } else {
            is_waiting = true;
        }
    }
    if is_waiting {
        return Err(Refusal::ClaimUnbound);
    }
    prepared.wanted.sort_by(|a, b| a.claim.requested().cmp(b.claim.requested()));
    for place in 1..prepared.wanted.len() {
        let (before, after) = prepared.wanted.split_at_mut(place);
        after[0].is_like_previous = after[0].candidates.are(&before[place - 1].candidates);
    }
    Ok(prepared)
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
            self.pinned.push(Pinned { node, making });
            return;
        }
        let request = Request::of(claim, true)
            .map_err(|problem| Fault::Selector { claim: claim.key(), problem: problem.to_owned() });
        let wish = Wish::of(claim);
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
