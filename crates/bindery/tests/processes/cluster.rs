//! A cluster for a controller under test: an API server, a client, and the recorded history.

use std::path::Path;
use std::time::{Duration, Instant};

use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use futures::{StreamExt, TryStreamExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::history::{self, History, Kind, Seen};
use crate::promises;
use crate::servers::{self, ApiServer};

/// The number of concurrent create requests.
const AT_ONCE: usize = 64;

/// A cluster and its history.
pub struct Cluster {
    pub history: History,
    pub client: Client,
    pub test_cluster: TestCluster,
}

impl Cluster {
    /// Starts a cluster, or returns `None` if the test is skipped.
    pub async fn for_test(api_server: ApiServer) -> Option<Cluster> {
        let test_cluster = api_server.start()?;
        let kubeconfig = Kubeconfig::read_from(test_cluster.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a config")).expect("a client");
        Some(Cluster { history: History::record(&client), client, test_cluster })
    }

    /// Starts a controller without leader election.
    pub fn controller(&self, flags: &[&str]) -> Running {
        self.controller_at(
            &servers::kubeconfig(&self.test_cluster, "controller"),
            &[&["--leader-elect=false"], flags].concat(),
        )
    }

    /// Starts a controller with this kubeconfig.
    pub fn controller_at(&self, kubeconfig: &Path, flags: &[&str]) -> Running {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let common = ["controller", "-v=4", "--listen=127.0.0.1:0", &kubeconfig];
        let args = common.iter().chain(flags);
        self.test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the controller starts")
    }

    /// Creates matching volumes and claims concurrently, in no order; `padding` enlarges the
    /// objects. For every ten pairs there is one more volume, too small for any claim.
    pub async fn make_pairs(&self, prefix: &str, count: usize, padding: usize) {
        let padding = "x".repeat(padding);
        let pair = |number: usize| {
            let gib = if number.is_multiple_of(10) { &[5, 1][..] } else { &[5] };
            let volumes = gib.iter().map(|gib| volume(&format!("{prefix}-{number}-{gib}"), *gib, &padding));
            volumes.chain([claim(&format!("{prefix}-{number}"), number % 4 + 2, &padding)]).collect::<Vec<_>>()
        };
        let made = futures::stream::iter((0..count).flat_map(pair)).map(|object| self.make(object));
        made.buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await.expect("everything is created");
    }

    async fn make(&self, object: Value) -> Result<(), kube::Error> {
        let path = match object["kind"] == "PersistentVolume" {
            true => "/api/v1/persistentvolumes",
            false => "/api/v1/namespaces/default/persistentvolumeclaims",
        };
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a request");
        self.client.request_text(request).await.map(drop)
    }

    /// Waits until this many claims, and as many volumes, are Bound.
    pub async fn bound(&self, count: usize) {
        let bound = |kind| self.history.count(kind, "Bound");
        eventually(
            || format!("{count} pairs are bound: {} claims, {} volumes", bound(Kind::Claim), bound(Kind::Volume)),
            || bound(Kind::Claim) == count && bound(Kind::Volume) == count,
        )
        .await;
    }

    /// Checks that the history is complete, ends with the server's current state, keeps every
    /// promise, and that this many pairs are bound.
    pub async fn check(&self, pairs: usize) {
        self.bound(pairs).await;
        for kind in [Kind::Volume, Kind::Claim] {
            let started = Instant::now();
            // Listed each time: the small volumes may be marked Available after all claims are
            // bound.
            while self.history.now(kind) != self.listed(kind).await {
                assert!(started.elapsed() < TIMEOUT, "timed out: the history is incomplete");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        promises::check(&self.history.revisions()).expect("all promises are kept");
        assert_eq!(self.history.now(Kind::Claim).len(), pairs, "no other claim exists");
    }

    async fn listed(&self, kind: Kind) -> Vec<Seen> {
        let (_, mut listed) = history::list(&self.client, kind).await.expect("a list");
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        listed
    }
}

fn volume(name: &str, gib: usize, padding: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"padding": padding}},
        "spec": {
            "capacity": {"storage": format!("{gib}Gi")},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": format!("/nowhere/{name}")},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    })
}

fn claim(name: &str, gib: usize, padding: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"padding": padding}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": format!("{gib}Gi")}},
        },
    })
}

/// Polls until a condition holds.
pub async fn eventually(what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < TIMEOUT, "timed out: {}", what());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The lines of a controller's log with this message.
pub fn lines(controller: &Running, message: &str) -> Vec<Value> {
    let said = |line: &Value| line["message"] == message;
    controller.log().lines().filter_map(|line| serde_json::from_str(line).ok()).filter(said).collect()
}
