//! State that all connections share: the store behind a lock, and notifications of changes.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::audit::{AuditEvent, AuditLog};
use super::context::ContextSource;
use super::discovery::Documents;
use super::limits::{Limits, Slots};
use super::metrics::Metrics;
use crate::api::{Api, RequestContext};
use crate::disk::SnapshotKeys;
use crate::kinds::{self, Kind};
use crate::status::Status;
use crate::store::JournalRecord;

/// Persists the changes of the store.
///
/// The store handles requests in memory; a response is sent, and a change is shown to watches, only
/// when everything up to its revision is persisted. This lets many writes share one sync.
pub trait Journal: Send + Sync {
    /// Adds changes, in order. Called while the store is locked, so it must not wait for the disk.
    fn append(&self, records: Vec<JournalRecord>);

    /// Returns when everything up to the revision is persisted, or with an error if it never will
    /// be.
    fn persisted(&self, revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

    /// Accepts no more changes, and returns when all previous ones are persisted. May wait for the
    /// disk.
    fn close(&self);
}

/// State that all connections share.
pub struct Shared {
    api: RwLock<Api>,
    journal: Option<Arc<dyn Journal>>,
    changed: BTreeMap<&'static str, watch::Sender<u64>>,
    revision: watch::Sender<u64>,
    contexts: ContextSource,
    /// The keys that a snapshot includes.
    pub keys: SnapshotKeys,
    /// Discovery documents, encoded once.
    pub documents: Documents,
    /// What is left of the limits.
    pub slots: Slots,
    /// What has happened so far.
    pub metrics: Metrics,
    /// Records all responses, if there is one.
    pub audit: Option<AuditLog>,
    shutdown: watch::Receiver<bool>,
}

/// What a server needs besides its store.
pub struct ServerInfo {
    /// Where it listens.
    pub address: SocketAddr,
    /// The certificate authority, and the administrator's token.
    pub keys: SnapshotKeys,
    /// Its limits.
    pub limits: Limits,
    /// Its audit log.
    pub audit: Option<AuditLog>,
}

impl Shared {
    /// Shares a store. Streams end on `shutdown`.
    pub fn new(
        mut api: Api,
        journal: Option<Arc<dyn Journal>>,
        server: ServerInfo,
        shutdown: watch::Receiver<bool>,
    ) -> Shared {
        // The initial objects of a new store.
        journal.iter().for_each(|journal| journal.append(api.take_records()));
        let revision = api.revision();
        let changed = kinds::all().iter().map(|kind| (kind.bucket(), watch::Sender::new(revision))).collect();
        Shared {
            api: RwLock::new(api),
            journal,
            changed,
            revision: watch::Sender::new(revision),
            contexts: ContextSource::default(),
            keys: server.keys,
            documents: Documents::new(server.address),
            slots: Slots::new(server.limits),
            metrics: Metrics::default(),
            audit: server.audit,
            shutdown,
        }
    }

    /// Whether this is the administrator's token, in constant time.
    pub fn is_admin_token(&self, token: &str) -> bool {
        let (known, shown) = (self.keys.token.as_bytes(), token.as_bytes());
        known.len() == shown.len() && known.iter().zip(shown).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }

    /// The context of a new request.
    pub fn context(&self) -> RequestContext {
        self.contexts.next()
    }

    /// A random audit ID.
    pub fn audit_id(&self) -> u128 {
        self.contexts.random()
    }

    /// Reads from the store, and returns its revision. The result, even an error, must not be sent
    /// before this revision is [persisted](Shared::persisted).
    pub fn read<T>(&self, operation: impl FnOnce(&Api) -> Result<T, Status>) -> (Result<T, Status>, u64) {
        let api = self.api.read().unwrap_or_else(PoisonError::into_inner);
        let result = catch_unwind(AssertUnwindSafe(|| operation(&api)));
        (result.unwrap_or_else(|_| Err(panic_status())), api.revision())
    }

    /// Changes the store; `kind` is the kind that the operation changes, if there is only one. A
    /// panic becomes a 500 and affects no other request, because a write is stored only after
    /// everything else has succeeded. Returns the new revision, like [`Shared::read`].
    pub fn write<T>(
        &self,
        kind: Option<&Kind>,
        operation: impl FnOnce(&mut Api) -> Result<T, Status>,
    ) -> (Result<T, Status>, u64) {
        let mut api = self.api.write().unwrap_or_else(PoisonError::into_inner);
        let before = api.revision();
        let result = catch_unwind(AssertUnwindSafe(|| operation(&mut api)));
        let after = api.revision();
        if let Some(journal) = &self.journal
            && after != before
        {
            journal.append(api.take_records());
        }
        drop(api);
        if after != before {
            self.notify(kind, before, after);
        }
        (result.unwrap_or_else(|_| Err(panic_status())), after)
    }

    /// Notifies watches. A single change is one of `kind`; several may be of any kind.
    fn notify(&self, kind: Option<&Kind>, before: u64, after: u64) {
        self.revision.send_replace(after);
        let only = kind.filter(|_| after == before + 1).and_then(|kind| self.changed.get(kind.bucket()));
        match only {
            Some(sender) => _ = sender.send_replace(after),
            None => self.changed.values().for_each(|sender| _ = sender.send_replace(after)),
        }
    }

    /// Records a response in the audit log, if there is one.
    pub fn record(&self, event: &AuditEvent<'_>) {
        if let Some(Err(error)) = self.audit.as_ref().map(|audit| audit.write(event)) {
            self.metrics.audit_errors.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "writing the audit log failed");
        }
    }

    /// Notifies of changes of a kind.
    pub fn changes_of(&self, kind: &Kind) -> watch::Receiver<u64> {
        self.changed.get(kind.bucket()).unwrap_or(&self.revision).subscribe()
    }

    /// Notifies of all changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Notifies of the shutdown.
    pub fn shutdown(&self) -> watch::Receiver<bool> {
        self.shutdown.clone()
    }

    /// Waits until everything up to a revision is persisted, if there is a journal.
    pub async fn persisted(&self, revision: u64) -> Result<(), Status> {
        match &self.journal {
            None => Ok(()),
            Some(journal) => journal.persisted(revision).await.map_err(Status::internal),
        }
    }
}

/// The response after a panic.
pub fn panic_status() -> Status {
    Status::internal("This request caused apiserver to panic. Look in the logs for details.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Settings;

    fn shared() -> Shared {
        let api = Api::new(Settings::default(), &ContextSource::default().next());
        let (_, shutdown) = watch::channel(false);
        let keys = SnapshotKeys { token: "right".to_owned(), ..SnapshotKeys::default() };
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let server = ServerInfo { address, keys, limits: Limits::default(), audit: None };
        Shared::new(api, None, server, shutdown)
    }

    #[test]
    fn a_panic_is_a_500_and_does_not_affect_other_requests() {
        let shared = shared();
        let answers: [Result<(), Status>; 2] =
            [shared.write(None, |_| panic!("in a write")).0, shared.read(|_| panic!("in a read")).0];
        for answer in answers {
            assert_eq!(answer.expect_err("it panics").http_code(), 500);
        }
        assert!(shared.write(None, |api| Ok(api.revision())).0.is_ok());
        assert!(shared.read(|api| Ok(api.revision())).0.is_ok());
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let shared = shared();
        assert!(shared.is_admin_token("right"));
        assert!(["", "righ", "rightt", "wrong"].iter().all(|token| !shared.is_admin_token(token)));
    }
}
