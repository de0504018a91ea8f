//! Rejected and failed requests: reported once each, and remembered while their key is not idle.

use bindery_model::ObjectKey;

use super::Engine;
use crate::queue::Work;
use crate::{Output, Rejection, RequestError};

impl Engine {
    /// The last rejected request of each key that has one: the key is not idle, and neither a write
    /// nor the same step has succeeded since.
    pub fn rejections(&self) -> impl Iterator<Item = &Rejection> {
        self.queue.rejections()
    }

    /// The last of these for an object, of all rule sets.
    pub fn rejection_of(&self, key: &ObjectKey) -> Option<&Rejection> {
        let works = (0..self.sets.len()).map(|set| Work { set, key: key.clone() });
        let rejections = works.filter_map(|work| self.queue.get(&work)?.rejection.as_deref());
        rejections.max_by_key(|rejection| rejection.at)
    }

    /// Reports and counts a rejected request.
    pub(super) fn report_rejection(&mut self, work: &Work, target: &ObjectKey, error: &RequestError) {
        self.note_rejection(work, target, error);
        if let Some(rejection) = self.queue.get(work).and_then(|progress| progress.rejection.as_deref()) {
            self.stats.count_rejection(error.status(), rejection.step);
            self.rejected = Some((work.clone(), self.out.len()));
            self.out.push(Output::Rejected(rejection.clone()));
        }
    }

    /// Remembers the rejected request of a key.
    pub(super) fn note_rejection(&mut self, work: &Work, target: &ObjectKey, error: &RequestError) {
        let (set, at) = (self.sets[work.set].profile().name, self.now);
        let Some(progress) = self.queue.get_mut(work) else { return };
        let Some(step) = progress.step.map(|step| step.name) else { return };
        let before = progress.rejection.take().filter(|before| before.step == step);
        let failures = before.map_or(0, |before| before.failures).saturating_add(1);
        let (key, target, error) = (work.key.clone(), target.clone(), error.clone());
        progress.rejection = Some(Box::new(Rejection { set, key, target, step, error, failures, at, retry_in: None }));
    }

    /// Forgets the rejection of a key once a write, or the request that was rejected, has
    /// succeeded.
    pub(super) fn settle_rejection(&mut self, work: &Work, is_write: bool) {
        let Some(progress) = self.queue.get_mut(work) else { return };
        let step = progress.step.map(|step| step.name);
        progress.rejection.take_if(|rejection| is_write || Some(rejection.step) == step);
    }

    /// Adds the time of the next retry to the reported rejection. It is known only after the key
    /// was decided about again, and is not before the end of a pause.
    pub(super) fn complete_rejection(&mut self) {
        let Some((work, index)) = self.rejected.take() else { return };
        let resume = self.gate.paused_until(self.now);
        let rejection = self.queue.get_mut(&work).and_then(|progress| progress.rejection.as_deref_mut());
        if let Some(rejection) = rejection {
            let pause = resume.map(|resume| resume.since(rejection.at));
            rejection.retry_in = rejection.retry_in.max(pause);
            self.out[index] = Output::Rejected(rejection.clone());
        }
    }
}
