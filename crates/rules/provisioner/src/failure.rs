//! Failures while nothing is recorded: no storage exists, and it is certain when to try again.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim};
use bindery_rules_api::{
    Action, Backoff, ClaimEdit, Edit, Event, Failure, FailureEffect, Measure, Timed, Verdict, Write,
};

use crate::claim::warning;
use crate::rules;
use crate::ruleset::Decision;

impl Decision<'_> {
    /// Decides after preparation has failed, or after a call which has created nothing and whose
    /// record was removed.
    pub fn failed(self, claim: &Claim, failure: &Failure) -> Verdict {
        let error = &failure.error;
        let verdict = match failure.effect {
            FailureEffect::Unknown => Verdict::retry(&rules::OUTCOME_UNKNOWN, Backoff::Storage, error),
            FailureEffect::NotAttempted => Verdict::retry(&rules::NOT_ATTEMPTED, Backoff::Storage, error),
            // The claim was deleted or replaced, and the watch will report it. Nothing has failed.
            FailureEffect::Stale => return Verdict::retry(&rules::STALE, Backoff::Api, error),
            FailureEffect::NotOurs => return not_ours(claim, error),
            FailureEffect::Infeasible => {
                let message =
                    format!("Volume provisioning failed with infeasible error. Retries will be delayed. {error}");
                let verdict = Verdict::retry(&rules::INFEASIBLE, Backoff::Infeasible, error);
                return publish(verdict, warning(claim, message));
            }
            FailureEffect::Reschedule if claim.annotations.has(Annotation::SelectedNode) => {
                let annotations = vec![(Annotation::SelectedNode, None)];
                let edit = Edit::Claim(ClaimEdit { annotations, ..ClaimEdit::default() });
                Verdict::write(&rules::RESCHEDULE, Write::claim(&rules::RESCHEDULE, claim, edit)).with_note(error)
            }
            FailureEffect::Reschedule
            | FailureEffect::Absent
            | FailureEffect::Nothing
            | FailureEffect::NameTaken
            | FailureEffect::InUse => Verdict::retry(&rules::FAILED, Backoff::Storage, error),
        };
        publish(verdict, warning(claim, error))
    }
}

/// Publishes a failure once it is certain when it is retried, or that it is not.
pub(crate) fn publish(verdict: Verdict, event: Event) -> Verdict {
    if matches!(verdict.action, Action::Retry(_)) || verdict.rule == &rules::RESCHEDULE {
        verdict.publish(event).measuring(Measure::Fail(Timed::Provision))
    } else {
        verdict
    }
}

/// Another controller provisions the volume. For a populator, an event says so.
fn not_ours(claim: &Claim, message: &str) -> Verdict {
    let verdict = Verdict::idle(&rules::NOT_OURS);
    if message.is_empty() {
        return verdict;
    }
    verdict.publish(Event::claim(claim, EventType::Normal, Reason::Provisioning, message)).with_note(message)
}
