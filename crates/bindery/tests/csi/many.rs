//! Many claims at once with binder, scheduler and provisioner as separate processes and a CSI
//! driver; the provisioner is killed repeatedly while volumes are created and deleted. No volume is
//! leaked, and no claim is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::server::Server;
use crate::servers::{self, ApiServer};

const DRIVER: &str = "many.example.com";
const HOSTNAME: &str = "kubernetes.io/hostname";
const NODES: usize = 10;
/// How often the provisioner is killed while volumes are created, and again while they are deleted.
const KILLS: usize = 10;
/// A generous limit for the whole test.
const WITHIN: Duration = TIMEOUT.saturating_mul(4);

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS: &str = "/api/v1/namespaces/default/pods";
const VOLUMES: &str = "/api/v1/persistentvolumes";

#[test]
fn on_a_real_api_server() {
    many_claims_and_many_kills(ApiServer::Real);
}

#[test]
fn on_the_embedded_api_server() {
    many_claims_and_many_kills(ApiServer::Embedded);
}

fn many_claims_and_many_kills(api_server: ApiServer) {
    let count = match api_server {
        ApiServer::Real => 300,
        ApiServer::Embedded => 1000,
    };
    let Some(test_cluster) = api_server.start() else { return };
    let decide = |command: &str, flags: &[&str]| {
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&test_cluster, command).display());
        let args = [&[command, &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"], flags].concat();
        test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
    };
    let _deciding = [decide("controller", &[]), decide("scheduler", &["--scheduler-name=default-scheduler"])];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut bench = Bench::start(&test_cluster).await;
        bench.set_up().await;
        bench.create_claims(count).await;
        bench.until(count, |seen| (seen.placed + seen.bound) / 2).await;
        bench.check(count).await;
        bench.delete_claims(count).await;
        bench.until(count, |seen| count - seen.volumes.max(seen.made).min(count)).await;
        assert!(bench.driver.volumes().is_empty(), "no volume is left in the driver");
        assert!(bench.server.list(CLAIMS).await.is_empty(), "no claim is stuck Terminating");
    });
}

struct Bench<'a> {
    test_cluster: &'a TestCluster,
    server: Server,
    driver: Arc<FakeDriver>,
    serving: Serving,
    provisioner: Running,
}

/// The progress.
struct Seen {
    placed: usize,
    bound: usize,
    volumes: usize,
    made: usize,
}

impl<'a> Bench<'a> {
    async fn start(test_cluster: &'a TestCluster) -> Bench<'a> {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let driver = Arc::new(FakeDriver::new(DRIVER));
        let serving = driver.serve(&test_cluster.folder().join("many.sock")).expect("a driver is served");
        let provisioner = provisioner(test_cluster, &serving);
        Bench { test_cluster, server, driver, serving, provisioner }
    }

    async fn set_up(&self) {
        let create = async |path: &str, object: Value| {
            self.server.create(path, &object).await.expect("it is created");
        };
        for number in 0..NODES {
            let name = format!("n{number}");
            let resources = json!({"cpu": "64", "memory": "64Gi", "pods": "200"});
            let node = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOSTNAME: name}},
                "status": {"capacity": resources, "allocatable": resources},
            });
            create("/api/v1/nodes", node).await;
            let driver = json!({"name": DRIVER, "nodeID": name, "topologyKeys": [HOSTNAME]});
            let on_node = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]},
            });
            create("/apis/storage.k8s.io/v1/csinodes", on_node).await;
        }
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "many"}, "provisioner": DRIVER,
            "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
        });
        create("/apis/storage.k8s.io/v1/storageclasses", class).await;
    }

    /// Creates claims, and a pod for each.
    async fn create_claims(&self, count: usize) {
        let made = futures::stream::iter(0..count).map(async |number| {
            let name = format!("c{number}");
            let claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "many",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            });
            self.server.create(CLAIMS, &claim).await.expect("a claim");
            let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {
                    "containers": [{"name": "c", "image": "none"}], "volumes": [volume],
                    "tolerations": [{"operator": "Exists"}],
                },
            });
            self.server.create(PODS, &pod).await.expect("a pod");
        });
        made.buffer_unordered(32).collect::<Vec<()>>().await;
    }

    async fn delete_claims(&self, count: usize) {
        let deleted = futures::stream::iter(0..count).map(async |number| {
            self.server.delete(&format!("{PODS}/c{number}?gracePeriodSeconds=0")).await.expect("a pod is deleted");
            self.server.delete(&format!("{CLAIMS}/c{number}")).await.expect("a claim is deleted");
        });
        deleted.buffer_unordered(32).collect::<Vec<()>>().await;
    }

    async fn look(&self) -> Seen {
        let (claims, pods) = (self.server.list(CLAIMS).await, self.server.list(PODS).await);
        let volumes = self.server.list(VOLUMES).await;
        Seen {
            placed: pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count(),
            bound: claims.iter().filter(|claim| claim["status"]["phase"] == "Bound").count(),
            volumes: volumes.len(),
            made: self.driver.volumes().len(),
        }
    }

    /// Waits until all is done, killing the provisioner `KILLS` times, each after some more
    /// progress.
    async fn until(&mut self, count: usize, done: impl Fn(&Seen) -> usize) {
        let (began, mut kills) = (Instant::now(), 0);
        loop {
            let seen = self.look().await;
            if done(&seen) == count && kills == KILLS {
                return;
            }
            if kills < KILLS && done(&seen) * 2 * KILLS >= kills * count {
                self.provisioner.kill().expect("killed");
                self.provisioner = provisioner(self.test_cluster, &self.serving);
                kills += 1;
            }
            assert!(
                began.elapsed() < WITHIN,
                "after {WITHIN:?}: {} pods placed, {} claims bound, {} volumes, {} at the driver\n{}",
                seen.placed,
                seen.bound,
                seen.volumes,
                seen.made,
                self.provisioner.log().lines().rev().take(30).collect::<Vec<_>>().join("\n"),
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks that every claim has one volume, which exists in the driver on the pod's node, and
    /// that no other volume exists.
    async fn check(&self, count: usize) {
        let place = |pod: &Value| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]));
        let places: BTreeMap<String, String> = self.server.list(PODS).await.iter().map(place).collect();
        let volumes = self.server.list(VOLUMES).await;
        let mut handles = BTreeSet::new();
        for volume in &volumes {
            let spec = &volume["spec"];
            let node = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0];
            assert_eq!(places.get(&text(&spec["claimRef"]["name"])), Some(&text(node)), "{volume}");
            assert!(handles.insert(text(&spec["csi"]["volumeHandle"])), "{volume}");
        }
        let held: BTreeSet<String> = self.driver.volumes().into_keys().collect();
        assert_eq!(handles, held, "the driver's volumes match the PersistentVolumes");
        assert_eq!(volumes.len(), count);
        // A claim may be bound before the provisioner has taken off what it had put there.
        let began = Instant::now();
        let is_left = |claim: &Value| claim["metadata"]["finalizers"].as_array().map(Vec::len) != Some(1);
        while let Some(claim) = self.server.list(CLAIMS).await.into_iter().find(is_left) {
            assert!(began.elapsed() < TIMEOUT, "the claim keeps another finalizer: {claim}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn provisioner(test_cluster: &TestCluster, serving: &Serving) -> Running {
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    let address = format!("--csi-address={}", serving.socket().display());
    let flags = ["--strict-topology", "--retry-interval-start=100ms", "--retry-interval-max=1s", "--kube-api-qps=0"];
    let args = ["provisioner", "csi", &kubeconfig, &address].into_iter().chain(flags);
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
}
