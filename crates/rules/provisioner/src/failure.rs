//! Failures of the storage, and unknown outcomes.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim};
use bindery_rules_api::{Action, Backoff, Event, Failure, FailureEffect, Measure, Rule, Task, Timed, Verdict};

use crate::claim::warning;
use crate::intent::Intent;
use crate::ruleset::Decision;
use crate::{intent, rules};

impl Decision<'_> {
    /// Decides after a failure. The intent stays on the claim until it is certain what the storage
    /// has created.
    pub fn failed(self, claim: &Claim, intent: Option<&Intent>, task: Task, failure: &Failure) -> Verdict {
        let error = &failure.error;
        if let Some(intent) = intent.filter(|_| failure.effect != FailureEffect::Stale) {
            let again = |rule| publish(Verdict::retry(rule, Backoff::Storage, error), warning(claim, error));
            if !self.is_conclusive(task, failure.effect) {
                return again(&rules::NOT_ATTEMPTED);
            }
            if failure.effect != FailureEffect::Unknown && !self.is_our_attempt(intent) {
                return again(&rules::SUPERSEDED);
            }
        }
        let verdict = match failure.effect {
            FailureEffect::Unknown => Verdict::retry(&rules::OUTCOME_UNKNOWN, Backoff::Storage, error),
            FailureEffect::NotAttempted => end_attempt(&rules::NOT_ATTEMPTED, claim, intent, Backoff::Storage, error),
            // The claim was deleted or replaced, and the watch will report it. Nothing has failed.
            FailureEffect::Stale => return Verdict::retry(&rules::STALE, Backoff::Api, error),
            FailureEffect::NotOurs => return not_ours(claim, intent, error),
            FailureEffect::Infeasible => {
                let message =
                    format!("Volume provisioning failed with infeasible error. Retries will be delayed. {error}");
                let verdict = end_attempt(&rules::INFEASIBLE, claim, intent, Backoff::Infeasible, error);
                return publish(verdict, warning(claim, message));
            }
            FailureEffect::Reschedule if claim.annotations.has(Annotation::SelectedNode) => {
                Verdict::write(&rules::RESCHEDULE, intent::remove(&rules::RESCHEDULE, claim, true)).with_note(error)
            }
            FailureEffect::NameTaken if self.was_called_before() => {
                Verdict::retry(&rules::PARAMETERS_CHANGED, Backoff::Storage, error)
            }
            FailureEffect::Reschedule | FailureEffect::Nothing | FailureEffect::NameTaken | FailureEffect::InUse => {
                end_attempt(&rules::FAILED, claim, intent, Backoff::Storage, error)
            }
        };
        publish(verdict, warning(claim, error))
    }

    /// Whether a failure shows what earlier calls created: if the storage was called now, or never
    /// before.
    fn is_conclusive(self, task: Task, effect: FailureEffect) -> bool {
        let was_called_now = task == Task::CreateStorage && effect != FailureEffect::NotAttempted;
        was_called_now || !self.was_called_before()
    }

    /// Whether the storage was called before this attempt with an unknown outcome.
    fn was_called_before(self) -> bool {
        self.live_reads.output(Task::Prepare).is_none_or(|prepared| !prepared["attempt"].is_null())
    }
}

/// Publishes a failure once it is certain when it is retried, or that it is not.
fn publish(verdict: Verdict, event: Event) -> Verdict {
    if matches!(verdict.action, Action::Retry(_)) || verdict.rule == &rules::RESCHEDULE {
        verdict.publish(event).measuring(Measure::Fail(Timed::Provision))
    } else {
        verdict
    }
}

/// Nothing was created for certain: removes the intent, then retries.
fn end_attempt(rule: &'static Rule, claim: &Claim, intent: Option<&Intent>, backoff: Backoff, error: &str) -> Verdict {
    match intent {
        Some(_) => Verdict::write(rule, intent::remove(rule, claim, false)).with_note(error),
        None => Verdict::retry(rule, backoff, error),
    }
}

/// Another controller provisions the volume. For a populator, an event says so.
fn not_ours(claim: &Claim, intent: Option<&Intent>, message: &str) -> Verdict {
    let verdict = match intent {
        Some(_) => Verdict::write(&rules::NOT_OURS, intent::remove(&rules::NOT_OURS, claim, false)),
        None => Verdict::idle(&rules::NOT_OURS),
    };
    if message.is_empty() {
        return verdict;
    }
    verdict.publish(Event::claim(claim, EventType::Normal, Reason::Provisioning, message)).with_note(message)
}
