//! What follows from a storage's no, or from its silence.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim};
use bindery_rules_api::{Action, After, Failure, Intent, Measure, Notice, Pace, Rule, Task, Timed, Verdict};

use crate::claim::warning;
use crate::set::Decision;
use crate::{intent, rules};

impl Decision<'_> {
    /// What follows from a failure for a claim. The intent stays on it for as long as nobody knows what the storage has made.
    pub fn failed(self, claim: &Claim, intent: Option<&Intent>, task: Task, failure: &Failure) -> Verdict {
        let error = &failure.error;
        if let Some(intent) = intent.filter(|_| failure.after != After::Stale) {
            let again = |rule| tell(Verdict::retry(rule, Pace::Storage, error), warning(claim, error));
            if !self.can_tell(task, failure.after) {
                return again(&rules::UNTRIED);
            }
            if failure.after != After::Unknown && !self.is_our_turn(intent) {
                return again(&rules::OVERTAKEN);
            }
        }
        let verdict = match failure.after {
            After::Unknown => Verdict::retry(&rules::UNCERTAIN, Pace::Storage, error),
            After::Untried => over(&rules::UNTRIED, claim, intent, Pace::Storage, error),
            // Word of it comes. There is nobody left who could be told, and nothing has failed.
            After::Stale => return Verdict::retry(&rules::STALE, Pace::Api, error),
            After::NotOurs => return others(claim, intent, error),
            After::Never => {
                let message =
                    format!("Volume provisioning failed with infeasible error. Retries will be delayed. {error}");
                let verdict = over(&rules::HOPELESS, claim, intent, Pace::Hopeless, error);
                return tell(verdict, warning(claim, message));
            }
            After::Elsewhere if claim.annotations.has(Annotation::SelectedNode) => {
                Verdict::write(&rules::ELSEWHERE, intent::take_off(&rules::ELSEWHERE, claim, true)).noting(error)
            }
            After::Taken if self.was_asked_before() => Verdict::retry(&rules::OTHERWISE, Pace::Storage, error),
            After::Elsewhere | After::Nothing | After::Taken | After::InUse => {
                over(&rules::FAILED, claim, intent, Pace::Storage, error)
            }
        };
        tell(verdict, warning(claim, error))
    }

    /// Whether a failure says anything of what may have been made before: only if the storage was asked, or there was nothing
    /// before.
    fn can_tell(self, task: Task, after: After) -> bool {
        let was_asked_now = task == Task::Provision && after != After::Untried;
        was_asked_now || !self.was_asked_before()
    }

    /// Whether the storage was asked before this attempt, and nobody knew what came of it.
    fn was_asked_before(self) -> bool {
        self.findings.yielded(Task::Prepare).is_none_or(|prepared| !prepared["turn"].is_null())
    }
}

/// Tells of a failure, once: when it is certain in how long it is tried again, or that it is not.
fn tell(verdict: Verdict, notice: Notice) -> Verdict {
    if matches!(verdict.action, Action::Retry(_)) || verdict.rule == &rules::ELSEWHERE {
        verdict.tell(notice).measuring(Measure::Fail(Timed::Provision))
    } else {
        verdict
    }
}

/// It is certain that there is nothing: the intent goes, then it is tried again.
fn over(rule: &'static Rule, claim: &Claim, intent: Option<&Intent>, pace: Pace, error: &str) -> Verdict {
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
    verdict.tell(Notice::claim(claim, EventType::Normal, Reason::Provisioning, message)).noting(message)
}
