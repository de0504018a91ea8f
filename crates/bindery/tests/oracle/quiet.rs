//! Waits until the cluster is idle.

use std::pin::pin;
use std::time::{Duration, Instant};

use bindery_model::{Kind, ObjectKey};
use bindery_test_cluster::TIMEOUT;
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::probe::object;
use crate::server::{EVENTS, Server, all_of};

/// If there are still writes after this time, they never stop.
const QUIET_WITHIN: Duration = TIMEOUT.saturating_mul(2);

/// The silence, as a multiple of the controllers' reaction time: the machine may be slow or busy.
const REACTIONS: u32 = 10;

/// The name prefix of the volumes that measure the reaction time.
const PROBE: &str = "probe-reaction-";

/// The kinds that are watched for writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Claims, volumes and pods; events may continue.
    Objects,
    /// The same, and events.
    Everything,
}

/// Counts changes with watches; the server's internal writes are not counted.
pub struct Listener {
    server: Server,
    /// The number of changes.
    heard: watch::Receiver<usize>,
    /// The number of probes.
    probes: usize,
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
        Listener { server: server.clone(), heard, probes: 0, _watches: watches }
    }

    /// Waits until there was no write for `duration`, or longer if the controllers are slow.
    pub async fn quiet(&mut self, duration: Duration) {
        let started = Instant::now();
        let mut enough = duration.max(self.reaction().await * REACTIONS);
        loop {
            while let Ok(heard) = timeout(enough, self.heard.changed()).await {
                heard.expect("the watches continue");
                assert!(started.elapsed() < QUIET_WITHIN, "still writing after {QUIET_WITHIN:?}");
            }
            // The silence may only mean that the controllers had no CPU time.
            let needed = self.reaction().await * REACTIONS;
            if needed <= enough && !self.heard.has_changed().expect("the watches continue") {
                return;
            }
            enough = duration.max(needed);
        }
    }

    /// The controllers' reaction time: until the binder marks a new volume Available.
    async fn reaction(&mut self) -> Duration {
        self.probes += 1;
        let key = ObjectKey::volume(format!("{PROBE}{}", self.probes));
        let began = Instant::now();
        self.server.create(&key, &object(&key)).await.expect("a probe is created");
        while self.server.get(&key).await.is_ok_and(|volume| volume["status"]["phase"] != "Available") {
            assert!(began.elapsed() < TIMEOUT, "timed out: {key:?} not processed");
            sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }
}

/// Counts the changes of successive watches; a gap after a closed watch counts as one change.
async fn listen(server: Server, path: String, hears: watch::Sender<usize>) {
    loop {
        hears.send_modify(|count| *count += 1);
        let mut lines = pin!(server.watch(&path).await);
        while let Some(Ok(line)) = lines.next().await {
            if !line.contains(PROBE) {
                hears.send_modify(|count| *count += 1);
            }
        }
    }
}
