//! Waiting until nobody writes any more.

use std::pin::pin;
use std::time::{Duration, Instant};

use bindery_volumes::Kind;
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::server::{EVENTS, Server, all_of};

/// Whoever still writes after so long never stops.
const QUIET_WITHIN: Duration = Duration::from_secs(90);

/// What is looked at to see whether anybody still writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Claims, volumes and pods: events may go on.
    Objects,
    /// The same, and events.
    Everything,
}

/// Watches that are listened to. A server also writes for itself, now and then: that is not heard here.
pub struct Listener {
    /// How many changes were heard.
    heard: watch::Receiver<usize>,
    _watches: JoinSet<()>,
}

impl Listener {
    pub fn start(server: &Server, watched: Watched) -> Listener {
        let objects = [Kind::Volume, Kind::Claim, Kind::Pod].map(all_of);
        let events = (watched == Watched::Everything).then(|| EVENTS.to_owned());
        let (hears, heard) = watch::channel(0);
        let mut watches = JoinSet::new();
        for path in objects.into_iter().chain(events) {
            watches.spawn(listen(server.clone(), path, hears.clone()));
        }
        Listener { heard, _watches: watches }
    }

    /// Waits until nobody has written anything for so long.
    pub async fn quiet(&mut self, duration: Duration) {
        let started = Instant::now();
        while let Ok(heard) = timeout(duration, self.heard.changed()).await {
            heard.expect("the watches go on");
            assert!(started.elapsed() < QUIET_WITHIN, "somebody still writes after {QUIET_WITHIN:?}");
        }
    }
}

/// Listens to one watch after the other: a server ends those that lag behind, and what was missed then counts as one change.
async fn listen(server: Server, path: String, hears: watch::Sender<usize>) {
    loop {
        hears.send_modify(|count| *count += 1);
        let mut lines = pin!(server.watch(&path).await);
        while let Some(Ok(_)) = lines.next().await {
            hears.send_modify(|count| *count += 1);
        }
    }
}
