//! Deciding about claims. Every branch names its rule.

use std::sync::Arc;

use bindery_matching::MatchCriteria;
use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, ClaimKey, ClaimPhase, Name, ObjectKey, Volume};
use bindery_rules_api::{Backoff, ClaimEdit, Edit, Event, Measure, Request as ApiRequest, Rule, Timed, Verdict, Write};

use crate::decision::Decision;
use crate::matching::{self, Choice};
use crate::{bind, migration, rules, status};

impl Decision<'_> {
    /// Decides about a claim.
    pub fn claim(self, key: &ClaimKey) -> Verdict {
        let Some(claim) = self.known.claim(key) else {
            return Verdict::idle(&rules::CLAIM_DELETED).measuring(Measure::Drop(Timed::Provision));
        };
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::CLAIM_MALFORMED).with_note(error.to_string());
        }
        if let Some(write) = migration::claim(claim) {
            return Verdict::write(&rules::CLAIM_MIGRATION, write);
        }
        match (claim.is_bind_completed(), &claim.volume) {
            (false, None) => self.unbound(claim),
            (false, Some(volume)) => self.named(claim, volume),
            (true, None) => lost(&rules::CLAIM_LOST_REFERENCE, claim, Reason::ClaimLost, LOST_REFERENCE),
            (true, Some(volume)) => self.bound(claim, volume),
        }
    }

    /// A claim that names no volume: any matching volume will do.
    fn unbound(self, claim: &Claim) -> Verdict {
        let delayed = match matching::is_delayed(self.known, claim) {
            Ok(delayed) => delayed,
            Err(error) => return Verdict::idle(&rules::CLAIM_CLASS_INVALID).with_note(error),
        };
        let request = match MatchCriteria::of(claim, delayed) {
            Ok(request) => request,
            Err(problem) => return selector_invalid(claim, problem),
        };
        match matching::choose(self.known, &request) {
            Some(Choice::Reserved(volume)) => bind::verdict(&rules::CLAIM_RESERVED, claim, volume),
            Some(Choice::Fits(volume)) => bind::verdict(&rules::CLAIM_FITS, claim, volume),
            None => self.no_volume_fits(claim, delayed),
        }
    }

    /// No volume matches: assigns the default class, waits for a consumer, or provisions.
    fn no_volume_fits(self, claim: &Claim, delayed: bool) -> Verdict {
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

    /// A claim with WaitForFirstConsumer. The event lists the pods that are not scheduled.
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

    /// A claim that was bound: it is still bound, or lost.
    fn bound(self, claim: &Claim, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return self.lost_if_live(claim, name, &rules::CLAIM_LOST_VOLUME, Reason::ClaimLost, LOST_VOLUME);
        };
        if let Some(error) = &volume.field_error {
            return Verdict::idle(&rules::CLAIM_VOLUME_MALFORMED).with_note(format!("{name}: {error}"));
        }
        match &volume.claim_ref {
            None if volume.is_scrubbing() => Verdict::idle(&rules::CLAIM_VOLUME_SCRUBBING),
            Some(owner) if volume.is_scrubbing() && owner.uid == claim.meta.uid => {
                Verdict::idle(&rules::CLAIM_VOLUME_SCRUBBING)
            }
            None => bind::verdict(&rules::CLAIM_VOLUME_UNCLAIMED, claim, volume),
            // As upstream, only the UID is compared.
            Some(owner) if owner.uid == claim.meta.uid => {
                bind::verdict(&rules::CLAIM_BOUND, claim, volume).measuring(Measure::End(Timed::Provision))
            }
            Some(_) => self.lost_if_live(claim, name, &rules::CLAIM_MISBOUND, Reason::ClaimMisbound, MISBOUND),
        }
    }

    /// Marks a claim Lost if a live read of its volume confirms it, because the cache may lag
    /// behind.
    fn lost_if_live(self, claim: &Claim, name: &Name, rule: &'static Rule, reason: Reason, message: &str) -> Verdict {
        if claim.status.phase == ClaimPhase::Lost {
            return Verdict::idle(rule);
        }
        let may_be_ours = |volume: &Arc<Volume>| {
            volume.claim_ref.is_none() || volume.belongs_to(&claim.meta.uid) || volume.field_error.is_some()
        };
        match self.live_reads.volume(name) {
            None => {
                let read = ApiRequest::Read(ObjectKey::volume(name.clone()));
                Verdict::request(&rules::CLAIM_VERIFY_VOLUME, read)
            }
            Some(Some(live)) if may_be_ours(live) => {
                let error = "the volume exists, but the watch has not reported it yet";
                Verdict::retry(&rules::CLAIM_VERIFY_VOLUME, Backoff::Api, error)
            }
            Some(_) => lost(rule, claim, reason, message),
        }
    }
}

const LOST_REFERENCE: &str = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
const LOST_VOLUME: &str = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
const MISBOUND: &str = "Two claims are bound to the same volume, this one is bound incorrectly";

/// A claim that stays Pending, with an event that says why.
pub(crate) fn waits(
    rule: &'static Rule,
    claim: &Claim,
    event_type: EventType,
    reason: Reason,
    message: &str,
) -> Verdict {
    Verdict::write_or_idle(rule, status::pending(claim)).publish(Event::claim(claim, event_type, reason, message))
}

fn lost(rule: &'static Rule, claim: &Claim, reason: Reason, message: &str) -> Verdict {
    let event = Event::claim(claim, EventType::Warning, reason, message);
    Verdict::write_or_idle(rule, status::lost(claim, event))
}

fn selector_invalid(claim: &Claim, problem: &str) -> Verdict {
    let key = claim.key().to_string();
    Verdict::idle(&rules::CLAIM_SELECTOR_INVALID).with_note(format!(
        "error finding PV for claim {key:?}: error creating internal label selector for claim: {key}: {problem}"
    ))
}
