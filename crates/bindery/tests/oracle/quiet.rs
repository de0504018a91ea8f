//! Waiting until nobody writes any more.

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

/// Whoever still writes after so long never stops.
const QUIET_WITHIN: Duration = TIMEOUT.saturating_mul(2);

/// NoObserver has written for this many times as long as it takes the controllers to see to something new: a machine may be slow, and
/// busy with other things.
const REACTIONS: u32 = 10;

/// The names of the volumes by which it is seen how quick the controllers are begin with this.
const PROBE: &str = "probe-reaction-";

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
    server: Server,
    /// How many changes were heard.
    heard: watch::Receiver<usize>,
    /// How many probes there were.
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

    /// Waits until nobody has written anything for so long, or for longer where the controllers are slow.
    pub async fn quiet(&mut self, duration: Duration) {
        let started = Instant::now();
        let mut enough = duration.max(self.reaction().await * REACTIONS);
        loop {
            while let Ok(heard) = timeout(enough, self.heard.changed()).await {
                heard.expect("the watches go on");
                assert!(started.elapsed() < QUIET_WITHIN, "somebody still writes after {QUIET_WITHIN:?}");
            }
            // Who was silent may have had no time to speak.
            let needed = self.reaction().await * REACTIONS;
            if needed <= enough && !self.heard.has_changed().expect("the watches go on") {
                return;
            }
            enough = duration.max(needed);
        }
    }

    /// How long it takes the controllers to see to something new: a volume that nobody asks for, which the binder marks.
    async fn reaction(&mut self) -> Duration {
        self.probes += 1;
        let key = ObjectKey::volume(format!("{PROBE}{}", self.probes));
        let began = Instant::now();
        self.server.create(&key, &object(&key)).await.expect("a probe is created");
        while self.server.get(&key).await.is_ok_and(|volume| volume["status"]["phase"] != "Available") {
            assert!(began.elapsed() < TIMEOUT, "nobody has seen to {key:?}");
            sleep(Duration::from_millis(10)).await;
        }
        began.elapsed()
    }
}

/// Listens to one watch after the other: a server ends those that lag behind, and what was missed then counts as one change.
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
