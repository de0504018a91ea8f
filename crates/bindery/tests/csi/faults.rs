//! A driver with every kind of fault, and a provisioner that is killed repeatedly: no volume is
//! leaked, and none in use is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES, text};

const DRIVER: &str = "f.example.com";
const CODES: [&str; 15] = [
    "CANCELLED",
    "UNKNOWN",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// Driver faults besides error codes, for CreateVolume and DeleteVolume.
const OTHERS: [(&str, &str); 12] = [
    ("ok", "ok"),
    ("hang,ok", "hang,ok"),
    ("hang,hang,ok", "hang,ABORTED,ok"),
    ("ABORTED,hang,UNAVAILABLE,ok", "INTERNAL,hang,ok"),
    ("drop,ok", "drop,ok"),
    ("drop,hang,ok", "hang,drop,ok"),
    ("small,ok", "INTERNAL,ok"),
    ("small,drop,ok", "ok"),
    ("zero", "drop,ok"),
    ("twice", "ok"),
    ("small", "ok"),
    ("INVALID_ARGUMENT", "ok"),
];
/// Claims that never get a usable volume.
const HOPELESS: [&str; 2] = ["small", "INVALID_ARGUMENT"];
/// How often the provisioner is killed while volumes are created, and again while they are deleted.
const KILLS: usize = 5;

struct Bench<'a> {
    test_cluster: &'a TestCluster,
    server: Server,
    driver: Arc<FakeDriver>,
    serving: Serving,
    provisioner: Running,
    _binder: Running,
    restarts: usize,
}

#[test]
fn faulty_drivers_leak_no_volume_and_lose_none_in_use() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut bench = Bench::start(&test_cluster).await;
        let scripts: Vec<(String, String)> = CODES
            .iter()
            .map(|code| (format!("{code},ok"), format!("{code},ok")))
            .chain(OTHERS.iter().map(|(create, delete)| (create.to_string(), delete.to_string())))
            .collect();
        for (number, (create, delete)) in scripts.iter().enumerate() {
            bench.claim(number, create, delete).await;
        }
        let bindable = scripts.iter().filter(|(create, _)| !HOPELESS.contains(&create.as_str())).count();
        bench.until("all claims are bound that can be", KILLS, |seen| seen.bound.len() == bindable).await;
        let kept: BTreeSet<usize> = (0..scripts.len()).filter(|number| number % 3 == 0).collect();
        for number in (0..scripts.len()).filter(|number| !kept.contains(number)) {
            bench.delete(number).await;
        }
        let bound_of = |numbers: &BTreeSet<usize>| {
            numbers.iter().filter(|number| !HOPELESS.contains(&scripts[**number].0.as_str())).count()
        };
        let left = bound_of(&kept);
        bench
            .until("deleted claims are gone", KILLS, |seen| {
                seen.claims == kept.len() && seen.bound.len() == left && seen.made == left && seen.volumes == left
            })
            .await;
        for number in kept {
            bench.delete(number).await;
        }
        bench.until("everything is deleted", 0, |seen| seen.claims == 0 && seen.volumes == 0 && seen.made == 0).await;
        assert!(bench.restarts >= KILLS, "the provisioner was restarted {} times", bench.restarts);
        let asked: BTreeMap<String, BTreeSet<String>> = bench.requested();
        let differing: Vec<_> = asked.iter().filter(|(_, requests)| requests.len() > 1).collect();
        assert!(differing.is_empty(), "retries must have identical parameters: {differing:?}");
    });
}

/// The observed state.
struct Seen {
    claims: usize,
    /// The handles of bound volumes.
    bound: BTreeSet<String>,
    volumes: usize,
    /// The number of volumes in the driver.
    made: usize,
}

impl<'a> Bench<'a> {
    async fn start(test_cluster: &'a TestCluster) -> Bench<'a> {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let driver = Arc::new(FakeDriver::new(DRIVER));
        let serving = driver.serve(&test_cluster.folder().join("faults.sock")).expect("a driver is served");
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let binder = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts");
        let provisioner = provisioner(test_cluster, &serving);
        Bench { test_cluster, server, driver, serving, provisioner, _binder: binder, restarts: 0 }
    }

    async fn claim(&self, number: usize, create: &str, delete: &str) {
        let name = format!("f{number}");
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": DRIVER,
            "parameters": {"create": create, "delete": delete},
        });
        self.server.create(CLASSES, &class).await.expect("a class");
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        self.server.create(CLAIMS, &claim).await.expect("a claim");
    }

    async fn delete(&self, number: usize) {
        self.server.delete(&format!("{CLAIMS}/f{number}")).await.expect("deleted");
    }

    /// Observes the state, and checks that every bound volume exists in the driver.
    async fn look(&self) -> Seen {
        let (claims, volumes) = (self.server.list(CLAIMS).await, self.server.list(VOLUMES).await);
        let is_live = |claim: &&Value| claim["metadata"].get("deletionTimestamp").is_none();
        let names: BTreeSet<&str> =
            claims.iter().filter(is_live).map(|claim| text(&claim["spec"]["volumeName"])).collect();
        let of_claim = volumes.iter().filter(|volume| names.contains(text(&volume["metadata"]["name"])));
        let bound: BTreeSet<String> =
            of_claim.map(|volume| text(&volume["spec"]["csi"]["volumeHandle"]).to_owned()).collect();
        let made = self.driver.volumes();
        for handle in &bound {
            assert!(made.contains_key(handle), "{handle} is in use, but deleted\n{}", self.provisioner.log());
        }
        Seen { claims: claims.len(), bound, volumes: volumes.len(), made: made.len() }
    }

    /// Waits until a condition holds. Meanwhile the provisioner is killed `kills` times, and
    /// restarted whenever it has ended.
    async fn until(&mut self, what: &str, mut kills: usize, holds: impl Fn(&Seen) -> bool) {
        let began = Instant::now();
        loop {
            let seen = self.look().await;
            if kills == 0 && holds(&seen) {
                return;
            }
            let Seen { claims, volumes, made, bound } = &seen;
            assert!(
                began.elapsed() < TIMEOUT,
                "after {TIMEOUT:?} it does not hold that {what}: {claims} claims, {} bound, {volumes} volumes, the driver has {made}\n{}",
                bound.len(),
                self.provisioner.log()
            );
            tokio::time::sleep(Duration::from_millis(400)).await;
            if kills > 0 {
                kills -= 1;
                self.provisioner.kill().expect("killed");
            }
            if self.provisioner.ended().is_some() {
                self.restarts += 1;
                self.provisioner = provisioner(self.test_cluster, &self.serving);
            }
        }
    }

    /// The CreateVolume parameters by volume name.
    fn requested(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call in self.driver.calls().iter().filter(|call| call["method"] == "CreateVolume") {
            asked.entry(text(&call["request"]["name"]).to_owned()).or_default().insert(call["request"].to_string());
        }
        asked
    }
}

fn provisioner(test_cluster: &TestCluster, serving: &Serving) -> Running {
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    let address = format!("--csi-address={}", serving.socket().display());
    let args = [
        "provisioner",
        "csi",
        &kubeconfig,
        &address,
        "--timeout=1s",
        "--retry-interval-start=100ms",
        "--retry-interval-max=1s",
        "--feature-gates=Topology=false",
        "--kube-api-qps=0",
    ];
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
}
