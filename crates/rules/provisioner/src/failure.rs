//! What follows from a storage's no, or from its silence.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim};
use bindery_rules_api::{Action, Backoff, Event, Failure, FailureEffect, Intent, Measure, Rule, Task, Timed, Verdict};

use crate::claim::warning;
use crate::set::Decision;
use crate::{intent, rules};

impl Decision<'_> {
    /// What follows from a failure for a claim. The intent stays on it for as long as nobody knows what the storage has made.
    pub fn failed(self, claim: &Claim, intent: Option<&Intent>, task: Task, failure: &Failure) -> Verdict {
        let error = &failure.error;
        if let Some(intent) = intent.filter(|_| failure.after != FailureEffect::Stale) {
            let again = |rule| tell(Verdict::retry(rule, Backoff::Storage, error), warning(claim, error));
            if !self.can_tell(task, failure.after) {
                return again(&rules::UNTRIED);
            }
            if failure.after != FailureEffect::Unknown && !self.is_our_turn(intent) {
                return again(&rules::OVERTAKEN);
            }
        }
        let verdict = match failure.after {
            FailureEffect::Unknown => Verdict::retry(&rules::UNCERTAIN, Backoff::Storage, error),
            FailureEffect::Untried => over(&rules::UNTRIED, claim, intent, Backoff::Storage, error),
            // Word of it comes. There is nobody left who could be told, and nothing has failed.
            FailureEffect::Stale => return Verdict::retry(&rules::STALE, Backoff::Api, error),
            FailureEffect::NotOurs => return others(claim, intent, error),
            FailureEffect::Never => {
                let message =
                    format!("Volume provisioning failed with infeasible error. Retries will be delayed. {error}");
                let verdict = over(&rules::HOPELESS, claim, intent, Backoff::Hopeless, error);
                return tell(verdict, warning(claim, message));
            }
            FailureEffect::Elsewhere if claim.annotations.has(Annotation::SelectedNode) => {
                Verdict::write(&rules::ELSEWHERE, intent::take_off(&rules::ELSEWHERE, claim, true)).noting(error)
            }
            FailureEffect::Taken if self.was_asked_before() => {
                Verdict::retry(&rules::OTHERWISE, Backoff::Storage, error)
            }
            FailureEffect::Elsewhere | FailureEffect::Nothing | FailureEffect::Taken | FailureEffect::InUse => {
                over(&rules::FAILED, claim, intent, Backoff::Storage, error)
            }
        };
        tell(verdict, warning(claim, error))
    }

    /// Whether a failure says anything of what may have been made before: only if the storage was asked, or there was nothing
    /// before.
    fn can_tell(self, task: Task, after: FailureEffect) -> bool {
        let was_asked_now = task == Task::Provision && after != FailureEffect::Untried;
        was_asked_now || !self.was_asked_before()
    }

    /// Whether the storage was asked before this attempt, and nobody knew what came of it.
    fn was_asked_before(self) -> bool {
        self.live_reads.yielded(Task::Prepare).is_none_or(|prepared| !prepared["turn"].is_null())
    }
}

/// Tells of a failure, once: when it is certain in how long it is tried again, or that it is not.
fn tell(verdict: Verdict, notice: Event) -> Verdict {
    if matches!(verdict.action, Action::Retry(_)) || verdict.rule == &rules::ELSEWHERE {
        verdict.tell(notice).measuring(Measure::Fail(Timed::Provision))
    } else {
        verdict
    }
}

/// It is certain that there is nothing: the intent goes, then it is tried again.
fn over(rule: &'static Rule, claim: &Claim, intent: Option<&Intent>, pace: Backoff, error: &str) -> Verdict {
    match intent {
        Some(_) => Verdict::write(rule, intent::take_off(rule, claim, false)).noting(error),
        None => Verdict::retry(rule, pace, error),
    }
}

/// It is somebody else's to make. A populator is told of.
fn others(claim: &Claim, intent: Option<&Intent>, message: &str) -> Verdict {
    let verdict = match intent {
        Some(_) => Verdict::write(&rules::OTHERS, intent::take_off(&rules::OTHERS, claim, false)),
        None => Verdict::settle(&rules::OTHERS),
    };
    if message.is_empty() {
        return verdict;
    }
    verdict.tell(Event::claim(claim, EventType::Normal, Reason::Provisioning, message)).noting(message)
}
