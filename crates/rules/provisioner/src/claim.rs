//! Claims: whether a volume is to be made, and the steps of making it, one at a time.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, BindingMode, Claim, ClaimKey, Class, Name, ObjectKey, Volume, VolumeMode, migration};
use bindery_rules_api::{
    Action, Backoff, Create, Event, Intent, Measure, Operation, ProvisionRequest, Request as Ask, Task, Timed, Verdict,
};
use serde_json::{Value, json};

use crate::intent;
use crate::rules;
use crate::set::Decision;
use crate::topology;

impl Decision<'_> {
    /// What is to be done about a claim.
    pub fn claim(self, key: &ClaimKey) -> Verdict {
        let Some(claim) = self.known.claim(key) else { return self.claim_gone(key) };
        if let Some(flaw) = &claim.field_error {
            return Verdict::settle(&rules::CLAIM_MALFORMED).noting(flaw.to_string());
        }
        if let Some(verdict) = self.orphan(claim) {
            return verdict;
        }
        if let Some(verdict) = self.source_of_clones(claim) {
            return verdict;
        }
        let intent = intent::of(claim, self.config);
        if self.live_reads.is_done(Task::CleanUp) {
            return self.unmade(claim, intent.as_ref());
        }
        let made = self.live_reads.yielded(Task::Provision);
        if intent.is_none()
            && made.is_none()
            && let Some(verdict) = self.not_wanted(claim)
        {
            return verdict;
        }
        let name = self.config.volume_name(claim);
        if let Some(volume) = self.known.volume(&name).filter(|volume| self.tells_all(intent.as_ref(), volume)) {
            return self.volume_exists(claim, intent.as_ref(), volume);
        }
        if let Some(made) = made {
            return self.keep(claim, intent.as_ref(), name, made);
        }
        let Some(class) = self.known.class(claim.class()) else {
            let message = format!("storageclass.storage.k8s.io {:?} not found", claim.class().as_str());
            return Verdict::settle(&rules::CLASS_MISSING).noting(message);
        };
        if !self.config.answers_to(&class.provisioner) {
            return Verdict::settle(&rules::CLASS_OTHERS).noting(format!("it is {}", class.provisioner));
        }
        if claim.volume_mode == VolumeMode::Block && !self.config.makes_blocks {
            let message = format!("{} does not support block volume provisioning", class.provisioner);
            return Verdict::settle(&rules::NO_BLOCK).tell(warning(claim, message));
        }
        let order = self.order(claim, class, intent.as_ref(), name);
        self.provision(claim, intent.as_ref(), order)
    }

    /// Why no volume is to be made for a claim, if so.
    fn not_wanted(self, claim: &Claim) -> Option<Verdict> {
        if claim.volume.is_some() {
            let done = Verdict::settle(&rules::HAS_VOLUME).measuring(Measure::End(Timed::Provision));
            return Some(done);
        }
        if !intent::is_asked(claim, self.config) {
            return Some(Verdict::settle(&rules::NOT_ASKED));
        }
        if !self.config.is_for(intent::chosen(claim)) {
            return Some(Verdict::settle(&rules::OTHERS).noting("this node was not chosen for it"));
        }
        let Some(class) = self.known.class(claim.class()) else {
            let message = format!("storageclass.storage.k8s.io {:?} not found", claim.class().as_str());
            return Some(Verdict::settle(&rules::CLASS_MISSING).noting(message));
        };
        let waits = class.binding == Some(BindingMode::WaitForFirstConsumer) && intent::chosen(claim).is_none();
        waits.then(|| Verdict::settle(&rules::WAITS_FOR_NODE).measuring(Measure::Drop(Timed::Provision)))
    }

    /// What to ask the storage for. Where it was asked before and did not answer, for just the same.
    fn order(self, claim: &Claim, class: &Class, intent: Option<&Intent>, volume: Name) -> ProvisionRequest {
        let chosen = |annotation| claim.annotations.get(annotation).filter(|node| !node.is_empty()).cloned();
        let node = match intent {
            Some(intent) => intent.node.clone(),
            None => chosen(Annotation::SelectedNode).or_else(|| chosen(Annotation::AlphaSelectedNode)),
        };
        let topology = match (intent.and_then(|intent| intent.topology.clone()), self.config.topology) {
            (Some(asked), _) => Ok(Some(asked)),
            (None, None) => Ok(None),
            (None, Some(how)) => {
                let allowed = migration::topologies(class);
                topology::of(self.known, &self.config.name, &allowed, &claim.meta.name, node.as_ref(), how)
            }
        };
        ProvisionRequest {
            claim: claim.key(),
            uid: claim.meta.uid.clone(),
            version: claim.meta.version,
            class: claim.class().clone(),
            provisioner: class.provisioner.clone(),
            volume,
            has_finalizer: self.config.guards_volumes,
            node,
            topology,
            turn: intent.map(|intent| intent.turn.clone()),
        }
    }

    /// The steps, from the last to the first: what is done already is seen from what was found out.
    fn provision(self, claim: &Claim, intent: Option<&Intent>, order: ProvisionRequest) -> Verdict {
        for task in [Task::Provision, Task::Prepare] {
            if let Some(failure) = self.live_reads.last_failure(task) {
                return self.failed(claim, intent, task, failure);
            }
        }
        let begin = Measure::Begin(Timed::Provision, measured_as(claim));
        let Some(prepared) = self.live_reads.yielded(Task::Prepare) else {
            let message = format!("External provisioner is provisioning volume for claim \"{}\"", order.claim);
            let notice = Event::claim(claim, EventType::Normal, Reason::Provisioning, message);
            let operation = Operation::Prepare(Box::new(order));
            return Verdict::request(&rules::PREPARE, Ask::RunOperation(operation)).tell(notice).measuring(begin);
        };
        let ours = intent::turn(self.config, prepared);
        let is_ours = order.turn.as_ref() == Some(&ours);
        if !order.is_prepared(prepared) || !is_ours && json!(order.turn) != prepared["turn"] {
            return Verdict::retry(&rules::STALE, Backoff::Api, "it changed meanwhile");
        }
        if !is_ours {
            let rule = if intent.is_some() { &rules::INTEND_AGAIN } else { &rules::INTEND };
            return Verdict::write(rule, intent::put_down(rule, claim, self.config, &order, ours));
        }
        let operation = Operation::Make(Box::new(order), prepared.clone());
        Verdict::request(&rules::MAKE, Ask::RunOperation(operation))
    }

    /// The storage has made it: the volume is created, or what was made is removed, where there is another of that name.
    fn keep(self, claim: &Claim, intent: Option<&Intent>, name: Name, made: &Arc<Value>) -> Verdict {
        if !self.live_reads.is_done(Task::SaveVolume) {
            return tell_of(claim, self.save(made, Task::SaveVolume));
        }
        // It was there already, and what is known does not show it.
        match self.live_reads.volume(&name) {
            None => Verdict::request(&rules::CHECK, Ask::Read(ObjectKey::volume(name))),
            Some(Some(volume)) => self.volume_exists(claim, intent, volume),
            Some(None) => {
                Verdict::retry(&rules::CHECK, Backoff::Api, "there was a volume of that name, and it is gone")
            }
        }
    }

    /// Creates the volume. Where that fails, what was made is remembered, and it is tried again after a while.
    fn save(self, made: &Arc<Value>, task: Task) -> Verdict {
        let failures = self.live_reads.failure_count(task);
        if failures > self.live_reads.pause_count() {
            let error = self.live_reads.last_failure(task).map(|failure| failure.error.clone()).unwrap_or_default();
            let wait = Duration::from_millis(100).saturating_mul(1 << failures.min(9));
            return Verdict::new(&rules::SAVE_FAILED, Action::Pause(wait)).noting(error);
        }
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let key = ObjectKey::volume(name);
        let create = Create { key, body: (**made).clone(), purpose: &rules::SAVE, task, then: Vec::new() };
        Verdict::request(&rules::SAVE, Ask::Create(create))
    }

    /// Whether a volume of the claim's name tells all there is to know. One that somebody else made does not show what the storage
    /// may have made: where it may have, it is asked, and what it has is compared.
    fn tells_all(self, intent: Option<&Intent>, volume: &Volume) -> bool {
        let by = volume.annotations.get(Annotation::ProvisionedBy);
        let is_compared = self.live_reads.yielded(Task::Provision).is_some();
        intent.is_none() || is_compared || by.is_some_and(|by| self.config.answers_to(by))
    }

    /// There is a volume of the claim's name. It is the claim's, or in the way.
    fn volume_exists(self, claim: &Claim, intent: Option<&Intent>, volume: &Volume) -> Verdict {
        let made = self.live_reads.yielded(Task::Provision);
        if let Some(made) = made.filter(|made| is_other_storage(made, volume)) {
            return self.unmake(&claim.key(), Some(claim), made);
        }
        if !volume.belongs_to(&claim.meta.uid) {
            let message = format!("a volume {} exists, and belongs to another claim", volume.name());
            return Verdict::settle(&rules::NAME_TAKEN).noting(&message).tell(warning(claim, message));
        }
        if volume.deleting {
            // The volume shows what there is, and stays until its claim is gone: which must not wait for the volume.
            if intent.is_some() {
                return Verdict::write(&rules::GOING, intent::take_off(&rules::GOING, claim, false));
            }
            let message = format!(
                "volume {} was made for it and is being deleted: once it is gone, another is made",
                volume.name()
            );
            return Verdict::settle(&rules::GOING).noting(&message).tell(warning(claim, message));
        }
        let notice = made.map(|_| {
            let message = format!("Successfully provisioned volume {}", volume.name());
            Event::claim(claim, EventType::Normal, Reason::ProvisioningSucceeded, message)
        });
        let verdict = match intent {
            Some(_) => Verdict::write(&rules::PROVISIONED, intent::take_off(&rules::PROVISIONED, claim, false)),
            None => Verdict::settle(&rules::PROVISIONED),
        };
        let verdict = verdict.measuring(Measure::End(Timed::Provision));
        notice.into_iter().fold(verdict, Verdict::tell)
    }

    /// Removes what was made in vain. The volume that is in the way has other storage behind it, so nothing of that is touched.
    fn unmake(self, key: &ClaimKey, claim: Option<&Claim>, made: &Arc<Value>) -> Verdict {
        let failures = self.live_reads.failure_count(Task::CleanUp);
        if failures > self.live_reads.pause_count() {
            let error = self.live_reads.last_failure(Task::CleanUp).map(|f| f.error.clone()).unwrap_or_default();
            let wait = Duration::from_millis(500).saturating_mul(1 << failures.min(8));
            let verdict = Verdict::new(&rules::UNMAKE_FAILED, Action::Pause(wait)).noting(&error);
            let warn = |claim| Event::claim(claim, EventType::Warning, Reason::ProvisioningCleanupFailed, &error);
            return claim.map(warn).into_iter().fold(verdict, Verdict::tell);
        }
        let operation = Operation::Unmake(key.clone(), made.clone());
        Verdict::request(&rules::UNMAKE, Ask::RunOperation(operation))
    }

    /// What was made in vain is removed: there is nothing now, and it is begun anew.
    fn unmade(self, claim: &Claim, intent: Option<&Intent>) -> Verdict {
        match intent {
            Some(intent) if self.is_our_turn(intent) => {
                Verdict::write(&rules::UNMADE, intent::take_off(&rules::UNMADE, claim, false))
            }
            Some(_) | None => Verdict::retry(&rules::UNMADE, Backoff::Storage, "there was another volume of that name"),
        }
    }

    /// Whether the intent on a claim is the one that we have asked under. If not, somebody else asks, or will: what we were told
    /// is not all there is to know.
    pub fn is_our_turn(self, intent: &Intent) -> bool {
        let prepared = self.live_reads.yielded(Task::Prepare);
        prepared.is_some_and(|prepared| intent.turn == intent::turn(self.config, prepared))
    }

    /// The claim is gone.
    fn claim_gone(self, key: &ClaimKey) -> Verdict {
        let made = self.live_reads.yielded(Task::Provision);
        made.and_then(|made| self.hand_over(key, made)).unwrap_or_else(|| {
            Verdict::settle(&rules::CLAIM_GONE).noting(key.to_string()).measuring(Measure::Drop(Timed::Provision))
        })
    }

    /// There is a claim, and something was made for a former one of its name, which comes first.
    fn orphan(self, claim: &Claim) -> Option<Verdict> {
        let made = self.live_reads.yielded(Task::Provision)?;
        if made["spec"]["claimRef"]["uid"] == *claim.meta.uid.as_str() {
            return None;
        }
        let again = || Verdict::retry(&rules::STALE, Backoff::Api, "there is a new claim of that name");
        Some(self.hand_over(&claim.key(), made).unwrap_or_else(again))
    }

    /// What was made for a claim that is gone becomes a volume all the same: it is released at once, and removed by its policy.
    /// Where there is another volume of that name, it is removed here. `None` once that is done.
    fn hand_over(self, key: &ClaimKey, made: &Arc<Value>) -> Option<Verdict> {
        if self.live_reads.is_done(Task::CleanUp) {
            return None;
        }
        if !self.live_reads.is_done(Task::SaveVolume) {
            return Some(self.save(made, Task::SaveVolume));
        }
        let name = Name::from(made["metadata"]["name"].as_str().unwrap_or_default());
        match self.live_reads.volume(&name) {
            None => Some(Verdict::request(&rules::CHECK, Ask::Read(ObjectKey::volume(name)))),
            // It was created and has gone by its policy, or another was in the way: to create it once more does no harm.
            Some(None) if self.live_reads.done_count(Task::SaveVolume) < 2 => Some(self.save(made, Task::SaveVolume)),
            Some(None) => None,
            Some(Some(volume)) if is_other_storage(made, volume) => Some(self.unmake(key, None, made)),
            Some(Some(_)) => None,
        }
    }
}

/// Tells why a volume could not be created, and is not yet.
fn tell_of(claim: &Claim, verdict: Verdict) -> Verdict {
    match verdict.note.clone() {
        Some(error) => verdict.tell(warning(claim, format!("Error creating provisioned PV object: {error}"))),
        None => verdict,
    }
}

/// Whether a volume has other storage behind it than what was made.
fn is_other_storage(made: &Value, volume: &Volume) -> bool {
    let made = Volume::from_json(made.to_string().as_bytes()).ok().and_then(|made| made.handle);
    made.is_some() && made != volume.handle
}

/// A warning that provisioning failed.
pub(crate) fn warning(claim: &Claim, message: impl Into<String>) -> Event {
    Event::claim(claim, EventType::Warning, Reason::ProvisioningFailed, message)
}

/// What provisioning is measured as: the claim's class, and the kind of what it is filled from. Neither has a slash in it.
fn measured_as(claim: &Claim) -> Name {
    let class = claim.class_field.as_deref().unwrap_or_default();
    let source = claim.source.as_ref().map_or("", |source| source.kind.as_str());
    format!("{class}/{source}").into()
}
