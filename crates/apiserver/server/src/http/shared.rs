//! What all connections share: the store behind a lock, and those who wait for it to change.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::discovery::Documents;
use super::moments::Moments;
use crate::api::{Api, Moment};
use crate::kinds::{self, Kind};
use crate::status::Status;
use crate::store::Record;

/// Keeps what was written where it outlives the process.
///
/// The store decides and answers at once; an answer is sent, and a change told, only when everything up to its revision is
/// persisted. That lets many writes share one sync of the disk.
pub trait Journal: Send + Sync {
    /// Takes what was written, in order. Called while the store is locked, so it must not wait for a disk.
    fn append(&self, records: Vec<Record>);

    /// Comes back when everything up to the revision is persisted; with an error if it never will be.
    fn persisted(&self, revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

    /// Takes nothing more, and comes back when everything that was taken is persisted. May wait for a disk.
    fn close(&self);
}

/// What all connections share.
pub struct Shared {
    api: RwLock<Api>,
    journal: Option<Arc<dyn Journal>>,
    wakes: BTreeMap<&'static str, watch::Sender<u64>>,
    revision: watch::Sender<u64>,
    moments: Moments,
    token: String,
    /// Discovery, encoded once.
    pub documents: Documents,
    stops: watch::Receiver<bool>,
}

impl Shared {
    /// Shares a store. Whoever shows `token` may do everything; streams end when `stops` says so.
    pub fn new(
        mut api: Api,
        journal: Option<Arc<dyn Journal>>,
        token: String,
        address: SocketAddr,
        stops: watch::Receiver<bool>,
    ) -> Shared {
        // What a new store begins with.
        journal.iter().for_each(|journal| journal.append(api.take_records()));
        let revision = api.revision();
        let wakes = kinds::all().iter().map(|kind| (kind.space, watch::Sender::new(revision))).collect();
        Shared {
            api: RwLock::new(api),
            journal,
            wakes,
            revision: watch::Sender::new(revision),
            moments: Moments::default(),
            token,
            documents: Documents::new(address),
            stops,
        }
    }

    /// Whether a token is the administrator's. Takes as long for a wrong one as for the right one.
    pub fn knows(&self, token: &str) -> bool {
        let (known, shown) = (self.token.as_bytes(), token.as_bytes());
        known.len() == shown.len() && known.iter().zip(shown).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }

    /// The time and the chance of a request.
    pub fn moment(&self) -> Moment {
        self.moments.next()
    }

    /// A new number for a request.
    pub fn audit_id(&self) -> u128 {
        self.moments.chance()
    }

    /// Looks into the store. Says too at which revision that was: nobody may be told what was seen, be it a refusal, before that much is
    /// [persisted](Shared::persisted).
    pub fn read<T>(&self, look: impl FnOnce(&Api) -> Result<T, Status>) -> (Result<T, Status>, u64) {
        let api = self.api.read().unwrap_or_else(PoisonError::into_inner);
        let looked = catch_unwind(AssertUnwindSafe(|| look(&api)));
        (looked.unwrap_or_else(|_| Err(panicked())), api.revision())
    }

    /// Changes the store: objects of one kind, if one is named. What panics is answered with a 500, and leaves everybody else unharmed: a
    /// write is decided before anything is stored. Says too at which revision the store is now, as [`Shared::read`] does.
    pub fn write<T>(
        &self,
        kind: Option<&Kind>,
        act: impl FnOnce(&mut Api) -> Result<T, Status>,
    ) -> (Result<T, Status>, u64) {
        let mut api = self.api.write().unwrap_or_else(PoisonError::into_inner);
        let before = api.revision();
        let acted = catch_unwind(AssertUnwindSafe(|| act(&mut api)));
        let after = api.revision();
        if let Some(journal) = &self.journal
            && after != before
        {
            journal.append(api.take_records());
        }
        drop(api);
        if after != before {
            self.tell(kind, before, after);
        }
        (acted.unwrap_or_else(|_| Err(panicked())), after)
    }

    /// Wakes those who wait. One change is one of the kind that was named; of which kinds more changes are, nobody said.
    fn tell(&self, kind: Option<&Kind>, before: u64, after: u64) {
        self.revision.send_replace(after);
        let only = kind.filter(|_| after == before + 1).and_then(|kind| self.wakes.get(kind.space));
        match only {
            Some(wake) => _ = wake.send_replace(after),
            None => self.wakes.values().for_each(|wake| _ = wake.send_replace(after)),
        }
    }

    /// Tells of changes of a kind.
    pub fn changes_of(&self, kind: &Kind) -> watch::Receiver<u64> {
        self.wakes.get(kind.space).unwrap_or(&self.revision).subscribe()
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Tells when everything is to end.
    pub fn stops(&self) -> watch::Receiver<bool> {
        self.stops.clone()
    }

    /// Waits until everything up to a revision is persisted, where anything is.
    pub async fn persisted(&self, revision: u64) -> Result<(), Status> {
        match &self.journal {
            None => Ok(()),
            Some(journal) => journal.persisted(revision).await.map_err(Status::internal),
        }
    }
}

/// What is answered where our own code failed.
pub fn panicked() -> Status {
    Status::internal("This request caused apiserver to panic. Look in the logs for details.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Settings;

    fn shared() -> Shared {
        let api = Api::new(Settings::default(), &Moments::default().next());
        let (_, stops) = watch::channel(false);
        Shared::new(api, None, "right".to_owned(), SocketAddr::from(([127, 0, 0, 1], 1)), stops)
    }

    #[test]
    fn what_panics_is_answered_and_others_go_on() {
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
    fn only_the_token_itself_is_known() {
        let shared = shared();
        assert!(shared.knows("right"));
        assert!(["", "righ", "rightt", "wrong"].iter().all(|token| !shared.knows(token)));
    }
}
