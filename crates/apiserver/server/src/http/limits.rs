//! How much the server does at the same time: connections, requests and watches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::Path;
use crate::status::{Details, Status};

/// When a rejected client should try again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Further ones are closed at once.
    pub connections: usize,
    /// Requests in flight, without watches. Further ones get a 429.
    pub requests: usize,
    /// Open watches. Further ones get a 429.
    pub watches: usize,
    /// How long a connection may be without a request, which includes the time to send one's
    /// headers.
    pub idle: Duration,
}

impl Default for Limits {
    /// The number of requests and the time are upstream's defaults.
    fn default() -> Limits {
        Limits { connections: 4096, requests: 600, watches: 10_000, idle: Duration::from_secs(90) }
    }
}

/// One of the limits; freed when it is dropped.
pub type Slot = OwnedSemaphorePermit;

/// What is left of the limits.
pub struct Slots {
    limits: Limits,
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

impl Slots {
    /// All slots are free.
    pub fn new(limits: Limits) -> Slots {
        let slots = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Slots {
            limits,
            connections: slots(limits.connections),
            requests: slots(limits.requests),
            watches: slots(limits.watches),
        }
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes a connection.
    pub fn connection(&self) -> Option<Slot> {
        take(&self.connections)
    }

    /// Takes a request. Probes of the server's health need none.
    pub fn request(&self, path: &Path<'_>) -> Result<Option<Slot>, Status> {
        match path {
            Path::Health(..) => Ok(None),
            Path::Root
            | Path::Version
            | Path::Metrics
            | Path::Snapshot
            | Path::CoreVersions
            | Path::Groups
            | Path::Group(_)
            | Path::Resources(..)
            | Path::OpenApiV2
            | Path::OpenApiIndex
            | Path::OpenApi(_)
            | Path::Objects(_)
            | Path::Unknown => take(&self.requests).map(Some).ok_or_else(|| too_many("requests")),
        }
    }

    /// Takes a watch.
    pub fn watch(&self) -> Result<Slot, Status> {
        take(&self.watches).ok_or_else(|| too_many("watches"))
    }

    /// How many connections, requests and watches there are.
    pub fn used(&self) -> [usize; 3] {
        let Limits { connections, requests, watches, .. } = self.limits;
        [(connections, &self.connections), (requests, &self.requests), (watches, &self.watches)]
            .map(|(limit, slots)| limit.min(Semaphore::MAX_PERMITS) - slots.available_permits())
    }
}

fn take(slots: &Arc<Semaphore>) -> Option<Slot> {
    Arc::clone(slots).try_acquire_owned().ok()
}

fn too_many(what: &str) -> Status {
    let details = Details { retry_after_seconds: Some(RETRY_AFTER_SECONDS), ..Details::default() };
    let message = format!("Too many {what}, please try again later.");
    Status::failure(429, "TooManyRequests", message).with(details)
}
