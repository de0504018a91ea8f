//! The claim side: what a claim needs next. Every arm names its rule.

use std::sync::Arc;

use bindery_matching::MatchCriteria;
use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, ClaimKey, ClaimPhase, Name, ObjectKey, Volume};
use bindery_rules_api::{Backoff, ClaimEdit, Edit, Event, Measure, Request as Ask, Rule, Timed, Verdict, Write};

use crate::decision::Decision;
use crate::matching::{self, Choice};
use crate::{bind, migration, rules, status};

impl Decision<'_> {
    /// What a claim needs next.
    pub fn claim(self, key: &ClaimKey) -> Verdict {
        let Some(claim) = self.known.claim(key) else {
            return Verdict::settle(&rules::CLAIM_GONE).measuring(Measure::Drop(Timed::Provision));
        };
        if let Some(flaw) = &claim.field_error {
            return Verdict::settle(&rules::CLAIM_MALFORMED).noting(flaw.to_string());
        }
        if let Some(write) = migration::claim(claim) {
            return Verdict::write(&rules::CLAIM_MIGRATION, write);
        }
        match (claim.is_bind_completed(), &claim.volume) {
            (false, None) => self.looking(claim),
            (false, Some(volume)) => self.named(claim, volume),
            (true, None) => lost(&rules::CLAIM_LOST_REFERENCE, claim, Reason::ClaimLost, LOST_REFERENCE),
            (true, Some(volume)) => self.bound(claim, volume),
        }
    }

    /// A claim that takes any volume that fits.
    fn looking(self, claim: &Claim) -> Verdict {
        let delayed = match matching::is_delayed(self.known, claim) {
            Ok(delayed) => delayed,
            Err(error) => return Verdict::settle(&rules::CLAIM_CLASS_UNCLEAR).noting(error),
        };
        let request = match MatchCriteria::of(claim, delayed) {
            Ok(request) => request,
            Err(problem) => return selector_invalid(claim, problem),
        };
        match matching::choose(self.known, &request) {
            Some(Choice::Reserved(volume)) => bind::verdict(&rules::CLAIM_RESERVED, claim, volume),
            Some(Choice::Fits(volume)) => bind::verdict(&rules::CLAIM_FITS, claim, volume),
            None => self.nothing_fits(claim, delayed),
        }
    }

    /// No volume fits: a class may help, or a pod, or a provisioner.
    fn nothing_fits(self, claim: &Claim, delayed: bool) -> Verdict {
        let default = (!claim.has_class()).then(|| self.known.default_class()).flatten();
        if let Some(class) = default {
            let edit = ClaimEdit { class: Some(class.meta.name.clone()), ..ClaimEdit::default() };
            let write = Write::claim(&rules::CLAIM_DEFAULT_CLASS, claim, Edit::Claim(edit));
            return Verdict::write(&rules::CLAIM_DEFAULT_CLASS, write);
        }
        if delayed && !claim.is_node_selected() {
            return self.waits_for_consumer(claim);
        }
        if !claim.class().is_empty() {
            return self.provision(claim);
        }
        let message = "no persistent volumes available for this claim and no storage class is set";
        waits(&rules::CLAIM_NO_VOLUME_FITS, claim, EventType::Normal, Reason::FailedBinding, message)
    }

    /// A claim that is bound when a pod uses it. Tells which pods have no node yet, if there are any.
    fn waits_for_consumer(self, claim: &Claim) -> Verdict {
        let unscheduled: Vec<&str> = self
            .known
            .pods_using(&claim.key())
            .filter(|pod| !pod.is_terminated() && pod.node.is_empty())
            .map(|pod| pod.meta.name.as_str())
            .collect();
        let (rule, reason, message) = match unscheduled.as_slice() {
            [] => (
                &rules::CLAIM_WAITS_FOR_CONSUMER,
                Reason::WaitForFirstConsumer,
                "waiting for first consumer to be created before binding".to_owned(),
            ),
            [pod] => (
                &rules::CLAIM_WAITS_FOR_SCHEDULING,
                Reason::WaitForPodScheduled,
                format!("waiting for pod {pod} to be scheduled"),
            ),
            pods => (
                &rules::CLAIM_WAITS_FOR_SCHEDULING,
                Reason::WaitForPodScheduled,
                format!("waiting for pods {} to be scheduled", pods.join(",")),
            ),
        };
        waits(rule, claim, EventType::Normal, reason, &message)
    }

    /// A claim that was bound: it still is, or it is lost.
    fn bound(self, claim: &Claim, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return self.lost_if_live(claim, name, &rules::CLAIM_LOST_VOLUME, Reason::ClaimLost, LOST_VOLUME);
        };
        if let Some(flaw) = &volume.field_error {
            return Verdict::settle(&rules::CLAIM_VOLUME_UNREADABLE).noting(format!("{name}: {flaw}"));
        }
        match &volume.claim_ref {
            None => bind::verdict(&rules::CLAIM_VOLUME_UNCLAIMED, claim, volume),
            // Only the UID counts here, as upstream: it tells claims apart for good.
            Some(owner) if owner.uid == claim.meta.uid => {
                bind::verdict(&rules::CLAIM_BOUND, claim, volume).measuring(Measure::End(Timed::Provision))
            }
            Some(_) => self.lost_if_live(claim, name, &rules::CLAIM_MISBOUND, Reason::ClaimMisbound, MISBOUND),
        }
    }

    /// Calls a claim lost when a live read of its volume shows it. What is known may lag behind.
    fn lost_if_live(self, claim: &Claim, name: &Name, rule: &'static Rule, reason: Reason, message: &str) -> Verdict {
        if claim.status.phase == ClaimPhase::Lost {
            return Verdict::settle(rule);
        }
        let may_be_ours = |volume: &Arc<Volume>| {
            volume.claim_ref.is_none() || volume.belongs_to(&claim.meta.uid) || volume.field_error.is_some()
        };
        match self.live_reads.volume(name) {
            None => {
                let read = Ask::Read(ObjectKey::volume(name.clone()));
                Verdict::request(&rules::CLAIM_LOOKS_FOR_VOLUME, read)
            }
            Some(Some(live)) if may_be_ours(live) => {
                let error = "its volume is there, and word of it has not arrived";
                Verdict::retry(&rules::CLAIM_LOOKS_FOR_VOLUME, Backoff::Api, error)
            }
            Some(_) => lost(rule, claim, reason, message),
        }
    }
}

const LOST_REFERENCE: &str = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
const LOST_VOLUME: &str = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
const MISBOUND: &str = "Two claims are bound to the same volume, this one is bound incorrectly";

/// A claim that waits, and says why.
pub(crate) fn waits(
    rule: &'static Rule,
    claim: &Claim,
    event_type: EventType,
    reason: Reason,
    message: &str,
) -> Verdict {
    Verdict::write_or_settle(rule, status::pending(claim)).tell(Event::claim(claim, event_type, reason, message))
}

fn lost(rule: &'static Rule, claim: &Claim, reason: Reason, message: &str) -> Verdict {
    let notice = Event::claim(claim, EventType::Warning, reason, message);
    Verdict::write_or_settle(rule, status::lost(claim, notice))
}

fn selector_invalid(claim: &Claim, problem: &str) -> Verdict {
    let key = claim.key().to_string();
    Verdict::settle(&rules::CLAIM_SELECTOR_INVALID).noting(format!(
        "error finding PV for claim {key:?}: error creating internal label selector for claim: {key}: {problem}"
    ))
}
