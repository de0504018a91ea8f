//! A cluster with three CSI drivers, a provisioner for each, and a binder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_simulation::oracle::Recorded;
use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use futures::StreamExt as _;
use futures::stream::iter;
use serde_json::{Value, json};

use crate::end::{End, ends};
use crate::fixtures::{self, COMMON, DRIVERS};
use crate::server::Server;
use crate::state::{self, CLAIMS, VOLUMES, list};

/// The number of states processed concurrently.
const AT_ONCE: usize = 16;
/// A hanging call times out after three seconds and is retried after at most two, so a silence of
/// twice that means idle.
const QUIET: Duration = Duration::from_secs(10);
/// If something still changes after this time, it never stops.
const QUIET_WITHIN: Duration = TIMEOUT.saturating_mul(2);

pub struct Cluster {
    server: Server,
    drivers: Vec<(Arc<FakeDriver>, Serving)>,
    provisioners: Vec<Running>,
    _binder: Running,
}

impl Cluster {
    pub async fn start(test_cluster: &TestCluster) -> Cluster {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        fixtures::set_up(&server).await;
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let (mut drivers, mut provisioners) = (vec![], vec![]);
        for (name, flags) in DRIVERS {
            let driver = Arc::new(FakeDriver::new(name));
            let serving =
                driver.serve(&test_cluster.folder().join(format!("{name}.sock"))).expect("a driver is served");
            let address = format!("--csi-address={}", serving.socket().display());
            let args = [&["provisioner", "csi", "-v=4", &kubeconfig, &address], &COMMON[..], flags].concat();
            provisioners
                .push(test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts"));
            drivers.push((driver, serving));
        }
        let args = [
            "controller",
            &kubeconfig,
            "--leader-elect=false",
            "--listen=127.0.0.1:0",
            // Off in the version the states were recorded with.
            "--feature-gates=PersistentVolumeClaimUnusedSinceTime=false",
        ];
        let binder = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts");
        Cluster { server, drivers, provisioners, _binder: binder }
    }

    /// The provisioners' logs.
    pub fn log(&self) -> String {
        self.provisioners.iter().map(Running::log).collect()
    }

    /// Creates all states, and applies the actions of each round.
    pub async fn carry_out<'a>(&mut self, states: &'a [Recorded]) -> Vec<End<'a>> {
        let since = Instant::now();
        let say = |what: &str| println!("{:5.1} s: {what}", since.elapsed().as_secs_f64());
        let server = &self.server;
        let set_up = |recorded: &'a Recorded| async move { state::set_up(server, &recorded.state).await };
        let uids: Vec<_> = iter(states).map(set_up).buffer_unordered(AT_ONCE).collect().await;
        let uids: BTreeMap<String, String> = uids.into_iter().flatten().collect();
        self.quiet().await;
        say("the beginning has settled");
        let rounds = |recorded: &Recorded| list(&recorded.state["rounds"]).len();
        for round in 0..states.iter().map(rounds).max().unwrap_or_default() {
            let (server, uids) = (&self.server, &uids);
            let act = |recorded: &'a Recorded| async move {
                for action in recorded.state["rounds"].get(round).map(list).unwrap_or_default() {
                    state::act(server, action, uids).await;
                }
            };
            iter(states).for_each_concurrent(AT_ONCE, act).await;
            self.quiet().await;
            say(&format!("round {} has settled", round + 1));
        }
        let calls = self.drivers.iter().flat_map(|(driver, _)| driver.calls()).collect();
        ends(&self.server, states, &uids, calls).await
    }

    /// Waits until nothing has changed for a while. Retries, and the writes that record them, do
    /// not count.
    async fn quiet(&mut self) {
        let (began, mut since, mut last) = (Instant::now(), Instant::now(), Value::Null);
        while since.elapsed() < QUIET {
            tokio::time::sleep(Duration::from_millis(500)).await;
            for provisioner in &mut self.provisioners {
                assert!(provisioner.ended().is_none(), "a provisioner ended:\n{}", provisioner.log());
            }
            let now = self.snapshot().await;
            if now != last {
                (last, since) = (now, Instant::now());
            }
            assert!(began.elapsed() < QUIET_WITHIN, "something still changes after {QUIET_WITHIN:?}");
        }
    }

    async fn snapshot(&self) -> Value {
        let (mut volumes, mut claims) = (self.server.list(VOLUMES).await, self.server.list(CLAIMS).await);
        for object in volumes.iter_mut().chain(&mut claims) {
            for field in ["resourceVersion", "managedFields"] {
                object["metadata"][field] = Value::Null;
            }
        }
        json!([volumes, claims])
    }
}
