//! Stores provisioning records in ConfigMaps of the provisioner's namespace.
//!
//! ```text
//!   Caller ── change of one record ──▶ RecordTask ── one conditional write ──▶ ConfigMap
//!          ◀────── its answer ────────     │  ▲
//!   engine ◀──── watched records ──────────┘  └── watch of the ConfigMaps
//! ```
//!
//! Writes are grouped: all changes that arrive while a write is in flight, or waits for the rate
//! limit, are made by the next one. Each write is conditional on the page's UID and
//! resourceVersion, and each change on the version of its record.

mod pages;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_engine::{Answer, RequestError};
use bindery_model::{Attempt, Name, Object, Record};
use bindery_rules_api::{Edit, Request};
use http::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;

use crate::api::{Api, GetError};
use crate::caller::request_error;
use crate::change_queue::{ChangeSender, WatchedChange};
use crate::pending_claims::PendingClaims;
use crate::watch_status::WatchStatus;
use pages::{Change, KIND, LABEL, PageWrite, Pages, label_value};
use watch::Seen;

/// The most changes in one group.
const GROUP_MAX: usize = 500;
/// How often a group is tried again after a conflict.
const CONFLICTS_MAX: usize = 5;

struct Pending {
    change: Change,
    answer: oneshot::Sender<Answer>,
}

/// The records of a provisioner: changes and reads them.
#[derive(Clone)]
pub struct Records {
    changes: UnboundedSender<Pending>,
    known: Known,
    pending: PendingClaims,
}

/// The records as last seen, by the UID of their claim.
type Known = Arc<Mutex<BTreeMap<Name, Arc<Record>>>>;

impl Records {
    /// The records of a provisioner in a namespace, and the task that stores them, which the caller
    /// must run. `name` identifies the provisioner, and its node if there is one on each node.
    pub fn new(api: Arc<Api>, namespace: &str, name: &str) -> (Records, RecordTask) {
        // The engine's gate bounds it: each change is a request in flight.
        let (changes, inbox) = unbounded_channel();
        let known = Known::default();
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let pages = Pages::new(set_name(name));
        let task = RecordTask { api, collection, pages, inbox, known: known.clone(), is_admitted: false };
        (Records { changes, known, pending: PendingClaims::default() }, task)
    }

    /// Sends a request of the engine about a record.
    pub async fn send(&self, request: &Request) -> Answer {
        let change = match request {
            Request::Create(create) => Change::Create(create.key.name.clone(), create.body.clone()),
            Request::Read(key) => Change::Read(key.name.clone()),
            Request::Write(write) => {
                let Edit::Record(edit) = write.edit() else { return unsupported() };
                Change::Write(write.target().name.clone(), write.version(), edit.clone())
            }
            Request::Bind(_) | Request::Delete(_) | Request::List(_) | Request::RunOperation(_) => {
                return unsupported();
            }
        };
        let (answer, received) = oneshot::channel();
        if self.changes.send(Pending { change, answer }).is_err() {
            return Answer::Rejected(RequestError::Lost);
        }
        received.await.unwrap_or(Answer::Rejected(RequestError::Lost))
    }

    /// The latest known attempt for a claim; `None` without a record.
    pub fn attempt(&self, claim_uid: &Name) -> Option<Attempt> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(claim_uid).map(|record| record.attempt.clone())
    }

    /// All records, as last seen.
    pub fn all(&self) -> Vec<Arc<Record>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The claims without a volume, as received.
    pub fn pending_claims(&self) -> &PendingClaims {
        &self.pending
    }
}

/// Lists the records of all provisioners, in all namespaces. Returns the list's resourceVersion and
/// the records.
pub async fn list_records(api: &Api) -> Result<(u64, Vec<Object>), GetError> {
    let list = api.get(&format!("/api/v1/configmaps?labelSelector={LABEL}")).await?;
    let (version, found) = watch::list_of(list);
    let mut pages = Pages::new(String::new());
    pages.listed(version, &found);
    Ok((version, pages.objects()))
}

fn unsupported() -> Answer {
    Answer::Rejected(RequestError::Error(0, "not a request about a provisioning record".into()))
}

/// The common part of the names of a provisioner's pages: at most 240 characters of a DNS name.
fn set_name(name: &str) -> String {
    let is_allowed =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || "-.".contains(character);
    let plain: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|character| if is_allowed(character) { character } else { '-' })
        .collect();
    let shortened = match plain.len() {
        0..=200 if plain == name => plain,
        // Different names must not share pages.
        _ => format!("{}-{:08x}", &plain[..plain.len().min(200)], bindery_model::hash::fnv1(name)),
    };
    format!("bindery-provisioning-{shortened}")
}

/// The task that stores records.
pub struct RecordTask {
    api: Arc<Api>,
    collection: String,
    pages: Pages,
    inbox: UnboundedReceiver<Pending>,
    known: Known,
    /// Whether the rate limit already admits the next call.
    is_admitted: bool,
}

impl RecordTask {
    /// Runs until the engine has stopped. What changes is sent to it.
    pub async fn run(mut self, outbox: ChangeSender, status: WatchStatus) {
        let (seen, mut watched) = channel(64);
        let query = format!("{}?labelSelector={LABEL}%3D{}", self.collection, label_value(&self.pages.set));
        let watch = watch::watch(self.api.clone(), query, seen, status);
        tokio::select! {
            () = watch => {}
            () = self.serve(&mut watched, &outbox) => {}
        }
    }

    async fn serve(&mut self, watched: &mut Receiver<Seen>, outbox: &ChangeSender) {
        let mut is_listed = false;
        loop {
            let is_open = tokio::select! {
                biased;
                seen = watched.recv() => match seen {
                    Some(Seen::Listed(version, pages)) if !is_listed => {
                        is_listed = true;
                        self.pages.listed(version, &pages);
                        let listed = WatchedChange::Listed(KIND, self.pages.version(), self.pages.objects());
                        self.publish(vec![listed], outbox)
                    }
                    Some(Seen::Listed(version, pages)) => {
                        let changes = self.pages.listed(version, &pages);
                        self.publish(changes, outbox)
                    }
                    Some(Seen::Page(page)) => {
                        let changes = self.pages.seen(&page);
                        self.publish(changes, outbox)
                    }
                    Some(Seen::Deleted(name, version)) => {
                        let changes = self.pages.deleted(&name, version);
                        self.publish(changes, outbox)
                    }
                    None => false,
                },
                pending = self.inbox.recv(), if is_listed => match pending {
                    Some(pending) => self.commit(pending, outbox).await,
                    None => false,
                },
            };
            if !is_open {
                return;
            }
        }
    }

    /// Sends changes to the engine, before the answers. Returns false if it has stopped.
    fn publish(&self, changes: Vec<WatchedChange>, outbox: &ChangeSender) -> bool {
        if !changes.is_empty() {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = self.pages.records().clone();
        }
        changes.into_iter().all(|change| outbox.send(change))
    }

    /// Makes a change, together with all others that wait by the time the rate limit admits a call.
    async fn commit(&mut self, first: Pending, outbox: &ChangeSender) -> bool {
        if self.api.admit().await.is_err() {
            return false;
        }
        self.is_admitted = true;
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(more) = self.inbox.try_recv()
        {
            group.push(more);
        }
        let (changes, answers): (Vec<Change>, Vec<_>) =
            group.into_iter().map(|pending| (pending.change, Some(pending.answer))).unzip();
        let mut answers = Answers(answers);
        let mut open: Vec<(usize, Change)> = changes.into_iter().enumerate().collect();
        // Records are read live.
        let reads = open.iter().any(|(_, change)| matches!(change, Change::Read(_)));
        if reads && let Err(error) = self.refresh(outbox).await {
            let (reads, others) = open.into_iter().partition(|(_, change)| matches!(change, Change::Read(_)));
            open = others;
            let reads: Vec<(usize, Change)> = reads;
            reads.iter().for_each(|(at, _)| answers.send(*at, Answer::Rejected(error.clone())));
        }
        for _ in 0..CONFLICTS_MAX {
            let plan = self.pages.plan(&open);
            plan.answers.into_iter().for_each(|(at, answer)| answers.send(at, answer));
            let mut conflicts = Vec::new();
            for write in plan.writes {
                self.write(write, &mut answers, &mut conflicts, outbox).await;
            }
            open.retain(|(at, _)| conflicts.contains(at));
            if open.is_empty() {
                return true;
            }
            if let Err(error) = self.refresh(outbox).await {
                open.iter().for_each(|(at, _)| answers.send(*at, Answer::Rejected(error.clone())));
                return true;
            }
        }
        open.iter().for_each(|(at, _)| answers.send(*at, Answer::Rejected(RequestError::Conflict)));
        true
    }

    /// Writes a page, and answers its changes unless the page has changed in the meantime.
    async fn write(
        &mut self,
        write: PageWrite,
        answers: &mut Answers,
        conflicts: &mut Vec<usize>,
        outbox: &ChangeSender,
    ) {
        let body = write.body.to_string().into_bytes();
        let request = match write.is_new {
            true => http::Request::post(&self.collection).header(CONTENT_TYPE, "application/json"),
            false => http::Request::patch(format!("{}/{}", self.collection, write.page))
                .header(CONTENT_TYPE, "application/merge-patch+json"),
        };
        let written = match request.body(body) {
            Ok(request) => self.call(request).await,
            Err(error) => Err(RequestError::Error(0, error.to_string())),
        };
        // A page cannot be created in a namespace that does not exist.
        let is_missing = write.is_new && matches!(written, Err(RequestError::NotFound));
        match written {
            Ok(page) => {
                let changes = self.pages.seen(&page);
                self.publish(changes, outbox);
                for (at, mut record) in write.changes {
                    let now = self.pages.record(&record.meta.name);
                    if !record.deleting
                        && let Some(now) = now
                    {
                        record = now.as_ref().clone();
                    }
                    answers.send(at, Answer::Written(Object::Record(Arc::new(record))));
                }
            }
            Err(RequestError::Conflict | RequestError::NotFound | RequestError::AlreadyExists) if !is_missing => {
                conflicts.extend(write.changes.into_iter().map(|(at, _)| at));
            }
            Err(error) => {
                let missing = || RequestError::Error(404, format!("{} does not exist", self.collection));
                let error = if error == RequestError::NotFound { missing() } else { error };
                for (at, _) in write.changes {
                    answers.send(at, Answer::Rejected(error.clone()));
                }
            }
        }
    }

    /// Lists the pages live.
    async fn refresh(&mut self, outbox: &ChangeSender) -> Result<(), RequestError> {
        let query = format!("{}?labelSelector={LABEL}%3D{}", self.collection, label_value(&self.pages.set));
        let request = http::Request::get(query).body(Vec::new());
        let request = request.map_err(|error| RequestError::Error(0, error.to_string()))?;
        let list = self.call(request).await?;
        let (version, pages) = watch::list_of(list);
        let changes = self.pages.listed(version, &pages);
        self.publish(changes, outbox);
        Ok(())
    }

    async fn call(&mut self, request: http::Request<Vec<u8>>) -> Result<Value, RequestError> {
        let may_have_changed = request.method() != http::Method::GET;
        if !std::mem::take(&mut self.is_admitted) {
            self.api.admit().await.map_err(|lost| RequestError::Unknown(0, lost.0))?;
        }
        let reply = self.api.call_admitted(request).await.map_err(|lost| RequestError::Unknown(0, lost.0))?;
        if !reply.status.is_success() {
            return Err(request_error(&reply, may_have_changed));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| RequestError::Unknown(reply.status.as_u16(), error.to_string()))
    }
}

/// The answers that are still to be given, by the position of the change in its group.
struct Answers(Vec<Option<oneshot::Sender<Answer>>>);

impl Answers {
    fn send(&mut self, at: usize, answer: Answer) {
        if let Some(sender) = self.0.get_mut(at).and_then(Option::take) {
            // The engine may have stopped.
            let _ = sender.send(answer);
        }
    }
}

/// How long to wait before the pages are listed again.
pub(super) const RETRY: Duration = Duration::from_secs(1);
