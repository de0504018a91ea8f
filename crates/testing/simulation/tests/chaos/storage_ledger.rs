//! The promises of the provisioner, checked with a ledger of all calls to the storage backend: at
//! every call against the state of the API server, and at the end against all existing storage.
//! Independent of the rules.
//!
//! One leak cannot be prevented: two provisioners use uncoordinated drivers, and one of them gets a
//! definite answer (the volume exists, or it does not) while a call of the other under the same
//! name is still running. The first removes the record. If the other crashes or times out, no one
//! learns about the volume that its call creates. Such a volume is *overtaken*, and is the only one
//! that may be left. A driver that runs one call per name at a time, as CSI requires, never causes
//! it.

use std::collections::{BTreeMap, BTreeSet};

use bindery_engine::Answer;
use bindery_model::{Annotation, Kind, Name, ObjectKey, finalizer};
use bindery_rules_api::{FailureEffect, Operation, ProvisionRequest, Request};
use bindery_simulation::SimulatedCluster;
use bindery_simulation::storage::CreateParameters;
use serde_json::Value;

use crate::protection::{is_deleting, list, of_kind, text};
use crate::storage_faults::{Drivers, name_of};

/// An engine: the index of the participant, and the number of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub participant: usize,
    pub incarnation: usize,
}

/// Stands for a user who removed a record.
const USER: usize = usize::MAX;

/// A call with an unknown outcome.
#[derive(Debug)]
struct OpenCall {
    participant: usize,
    parameters: CreateParameters,
    is_overtaken: bool,
    /// Whether the outcome of an earlier call of the same participant is unknown as well.
    is_repeated: bool,
}

/// Storage that a provisioner is responsible for.
#[derive(Debug, Default)]
struct StoredVolume {
    parameters: Option<CreateParameters>,
    is_overtaken: bool,
    /// The engines that received its handle.
    known_by: BTreeSet<Caller>,
}

/// All calls and their outcomes.
#[derive(Debug, Default)]
pub struct StorageLedger {
    /// The existing storage, by handle.
    stored: BTreeMap<String, StoredVolume>,
    /// Calls with an unknown outcome, by volume name.
    open: BTreeMap<String, Vec<OpenCall>>,
    /// The participants that got a definite answer since the record was last written, by volume
    /// name.
    definite_answers: BTreeMap<String, BTreeSet<usize>>,
    /// The current attempts, by the UID of the claim.
    attempts: BTreeMap<String, String>,
    /// The UIDs of all claims so far, and all nodes that were selected for them.
    claims: BTreeSet<String>,
    selected_nodes: BTreeSet<(String, String)>,
    /// The names of volumes that users created. If such a name is in use and the record was
    /// removed, only one engine knows about the unused storage, and only as long as it gets
    /// answers.
    user_volumes: BTreeSet<String>,
    /// The handles of volumes that had the policy Retain at some time: users delete their storage.
    retained: BTreeSet<String>,
}

fn handle(volume: &Value) -> &str {
    text(volume, "/spec/csi/volumeHandle")
}

fn has_record(cluster: &SimulatedCluster, claim_uid: &str) -> bool {
    cluster.get(&ObjectKey::record(claim_uid)).is_some()
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// The class of a claim, if it belongs to the provisioner.
fn class_of<'a>(cluster: &'a SimulatedCluster, claim: &Value) -> Option<&'a Value> {
    let key = ObjectKey::cluster(Kind::Class, Name::from(text(claim, "/spec/storageClassName")));
    cluster.get(&key).filter(|class| text(class, "/provisioner") == "csi.example.com")
}

fn handles(cluster: &SimulatedCluster) -> &BTreeMap<String, String> {
    &cluster.storage.as_ref().expect("the cluster has storage").handles
}

impl StorageLedger {
    /// Records the current claims, attempts and policies.
    pub fn observe(&mut self, cluster: &SimulatedCluster) {
        for (_, claim) in of_kind(cluster, Kind::Claim) {
            let uid = uid(claim).to_owned();
            if let Some(node) = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str() {
                self.selected_nodes.insert((uid.clone(), node.to_owned()));
            }
            self.claims.insert(uid);
        }
        let attempts = of_kind(cluster, Kind::Record);
        let attempts: BTreeMap<String, String> =
            attempts.map(|(key, record)| (key.name.to_string(), record["attempt"].to_string())).collect();
        for (uid, _) in attempts.iter().filter(|(uid, attempt)| self.attempts.get(*uid) != Some(*attempt)) {
            self.definite_answers.remove(&format!("pvc-{uid}"));
        }
        self.attempts = attempts;
        for (_, volume) in of_kind(cluster, Kind::Volume) {
            if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Retain" {
                self.retained.insert(handle(volume).to_owned());
            }
        }
    }

    /// A user created storage and a volume. Without a finalizer the user is responsible for it.
    pub fn created_by_user(&mut self, handle: &str, volume: &Value) {
        self.user_volumes.insert(text(volume, "/metadata/name").to_owned());
        if list(volume, "/metadata/finalizers").any(|name| *name == finalizer::EXTERNAL_PROVISIONER) {
            self.stored.insert(handle.to_owned(), StoredVolume::default());
        }
    }

    /// A user removed the record of a claim, and is responsible for storage that no one knows
    /// about.
    pub fn record_removed(&mut self, claim_uid: &str) {
        let name = format!("pvc-{claim_uid}");
        self.open.entry(name.clone()).or_default().iter_mut().for_each(|open| open.is_overtaken = true);
        let belongs = |handle: &String| handle.starts_with(&format!("{name}@"));
        self.stored.iter_mut().filter(|(handle, _)| belongs(handle)).for_each(|(_, stored)| stored.is_overtaken = true);
        self.definite_answers.entry(name).or_default().insert(USER);
    }

    // === At every call ===

    /// A call reaches the storage backend.
    pub fn call_started(&mut self, caller: Caller, cluster: &SimulatedCluster, request: &Request) {
        let Request::RunOperation(operation) = request else { return };
        match operation {
            Operation::CreateStorage(order, prepared) => {
                let belongs =
                    prepared["uid"] == *order.uid.as_str() && prepared["node"].as_str() == order.node.as_deref();
                assert!(belongs, "{} is requested with values prepared for another claim: {prepared}", order.volume);
                self.check_request(caller, order, CreateParameters::of(order, prepared));
            }
            Operation::DeleteStorage(proof, _) => {
                let volume = cluster.get(&ObjectKey::volume(proof.name().clone())).expect("the volume exists");
                let policy = text(volume, "/spec/persistentVolumeReclaimPolicy");
                assert_eq!(policy, "Delete", "{} has the policy Retain, but its storage is deleted", proof.name());
                check_unused(cluster, proof.name(), text(volume, "/spec/claimRef/uid"));
            }
            Operation::DiscardStorage(..) | Operation::Prepare(_) | Operation::Recycle(_) => {}
        }
    }

    /// S9, S10: a volume is requested under a name derived from its claim, after a node was
    /// selected if the class requires it, and with the same parameters as before unless the outcome
    /// is known.
    fn check_request(&mut self, caller: Caller, order: &ProvisionRequest, parameters: CreateParameters) {
        let name = order.volume.as_str();
        assert_eq!(name, format!("pvc-{}", order.uid), "the volume name is not derived from {}", order.claim);
        assert!(self.claims.contains(order.uid.as_str()), "{name} is requested for a claim that never existed");
        if order.class == "make" {
            let node = order.node.as_ref().map(Name::to_string).unwrap_or_default();
            let is_selected = self.selected_nodes.contains(&(order.uid.to_string(), node));
            assert!(is_selected, "{name} is requested on {:?}, which was not selected", order.node);
        }
        let open = self.open.entry(name.to_owned()).or_default();
        for before in open.iter().filter(|before| !before.is_overtaken) {
            assert_eq!(before.parameters, parameters, "{name}: parameters changed while the outcome was unknown");
        }
        let belongs = |handle: &String| handle.starts_with(&format!("{name}@"));
        for (handle, stored) in self.stored.iter().filter(|(handle, stored)| belongs(handle) && !stored.is_overtaken) {
            let is_same = stored.parameters.as_ref().is_none_or(|before| *before == parameters);
            assert!(
                is_same,
                "{handle} exists, but other parameters are requested: {parameters:?}, not {:?}",
                stored.parameters
            );
        }
        let is_repeated = open.iter().any(|before| before.participant == caller.participant);
        open.retain(|before| before.participant != caller.participant);
        open.push(OpenCall { participant: caller.participant, parameters, is_overtaken: false, is_repeated });
    }

    /// A call was carried out.
    pub fn call_finished(
        &mut self,
        caller: Caller,
        before: &SimulatedCluster,
        after: &SimulatedCluster,
        request: &Request,
    ) {
        let Some(name) = name_of(request) else { return };
        let (had, has) = (handles(before), handles(after));
        for handle in has.values().filter(|handle| !had.values().any(|old| old == *handle)) {
            let Request::RunOperation(Operation::CreateStorage(order, prepared)) = request else { continue };
            let parameters = Some(CreateParameters::of(order, prepared));
            let others = self.definite_answers.get(name).into_iter().flatten();
            let is_overtaken = others.into_iter().any(|participant| *participant != caller.participant);
            self.stored.insert(handle.clone(), StoredVolume { parameters, is_overtaken, known_by: BTreeSet::new() });
        }
        for (name, handle) in had.iter().filter(|(_, handle)| !has.values().any(|new| new == *handle)) {
            self.removed(before, name, handle, request);
        }
    }

    /// S4, S5: deleted storage is not in use, and its policy is not Retain.
    fn removed(&mut self, before: &SimulatedCluster, name: &str, handle_of: &str, request: &Request) {
        self.stored.remove(handle_of);
        self.open.remove(name);
        if !matches!(request, Request::RunOperation(Operation::DiscardStorage(..))) {
            check_unused(before, name, name.trim_start_matches("pvc-"));
        } else {
            let volume = of_kind(before, Kind::Volume).find(|(_, volume)| handle(volume) == handle_of);
            assert!(volume.is_none(), "{handle_of} backs {volume:?}, but was deleted as unused");
        }
    }

    /// An engine received the answer to its call.
    pub fn answer_received(&mut self, caller: Caller, request: &Request, answer: &Answer) {
        let Request::RunOperation(Operation::CreateStorage(order, _)) = request else { return };
        if matches!(answer, Answer::Done(Ok(_))) {
            let belongs = |handle: &String| handle.starts_with(&format!("{}@", order.volume));
            for (_, stored) in self.stored.iter_mut().filter(|(handle, _)| belongs(handle)) {
                stored.known_by.insert(caller);
            }
        }
    }

    /// The storage backend gave an answer; only definite ones are recorded.
    pub fn answered(&mut self, caller: Caller, request: &Request, answer: &Answer, drivers: Drivers) {
        let (Some(name), Answer::Done(outcome)) = (name_of(request), answer) else { return };
        let is_make = matches!(request, Request::RunOperation(Operation::CreateStorage(..)));
        let after = outcome.as_ref().err().map(|failure| failure.effect);
        if !is_make
            || matches!(after, Some(FailureEffect::Unknown | FailureEffect::NotAttempted | FailureEffect::Stale))
        {
            return;
        }
        // Most errors say only that this call has created nothing.
        let is_conclusive =
            after.is_none_or(|after| matches!(after, FailureEffect::Reschedule | FailureEffect::Absent));
        if !is_conclusive {
            let open = self.open.entry(name.to_owned()).or_default();
            open.retain(|open| open.participant != caller.participant || open.is_repeated);
            return;
        }
        // A driver that runs one call per name at a time speaks for all calls.
        if drivers == Drivers::One {
            self.open.remove(name);
            return;
        }
        self.definite_answers.entry(name.to_owned()).or_default().insert(caller.participant);
        let open = self.open.entry(name.to_owned()).or_default();
        open.retain(|open| open.participant != caller.participant);
        open.iter_mut().for_each(|open| open.is_overtaken = true);
    }

    // === Once the faults have stopped ===

    /// No storage is leaked: it backs a volume. L2, L3: claims have volumes, released storage is
    /// deleted, and no record is left.
    pub fn check_stable(&self, cluster: &SimulatedCluster, incarnations: &[usize]) {
        let history = cluster.history.join("\n");
        if let Some((key, record)) = of_kind(cluster, Kind::Record).next() {
            panic!("{key} is left: {record}\n{history}");
        }
        for (key, claim) in of_kind(cluster, Kind::Claim) {
            let Some(class) = class_of(cluster, claim) else { continue };
            let selected = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
            let is_delayed = text(class, "/volumeBindingMode") == "WaitForFirstConsumer";
            let can_be_provisioned = !is_deleting(claim) && text(claim, "/spec/volumeName").is_empty();
            let is_missing = can_be_provisioned && (!is_delayed || selected.is_some());
            assert!(!is_missing, "{key} has no volume: {claim}\n{history}");
        }
        for (key, volume) in of_kind(cluster, Kind::Volume).filter(|(_, volume)| !handle(volume).is_empty()) {
            let is_left = text(volume, "/status/phase") == "Released"
                && text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete"
                && !list(volume, "/metadata/finalizers").any(|name| *name == "example.com/mine");
            assert!(!is_left, "{key} is not deleted: {volume}\n{history}");
        }
        for (name, handle_of) in handles(cluster).iter().filter(|(_, handle)| self.stored.contains_key(*handle)) {
            let has_volume = of_kind(cluster, Kind::Volume).any(|(_, volume)| handle(volume) == handle_of);
            let is_recorded = has_record(cluster, name.trim_start_matches("pvc-"));
            let is_lost = self.stored.get(handle_of).is_some_and(|stored| {
                let is_running = |caller: &Caller| incarnations.get(caller.participant) == Some(&caller.incarnation);
                stored.is_overtaken && (self.user_volumes.contains(name) || !stored.known_by.iter().any(is_running))
            });
            let is_leaked = !has_volume && !is_recorded && !is_lost && !self.retained.contains(handle_of);
            assert!(!is_leaked, "{handle_of} is leaked: {self:?}\n{history}");
        }
    }
}

/// No existing claim with the UID uses the volume or may bind to it.
fn check_unused(cluster: &SimulatedCluster, volume: &str, uid_of: &str) {
    let has_it = |claim: &Value| uid(claim) == uid_of && ["", volume].contains(&text(claim, "/spec/volumeName"));
    let claim = of_kind(cluster, Kind::Claim).find(|(_, claim)| has_it(claim));
    assert!(claim.is_none(), "{volume} belongs to {claim:?}, but its storage was deleted");
}
