//! The process: leader election, endpoints, secrecy, and its end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES};
use crate::wait::until;

const DRIVER: &str = "p.example.com";
const SECRET: &str = "a-secret-password";

#[test]
fn it_elects_a_leader_serves_metrics_hides_secrets_and_ends_with_its_driver() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let driver = Arc::new(FakeDriver::new(DRIVER));
        let serving = driver.serve(&test_cluster.folder().join("process.sock")).expect("a driver is served");
        let mut leader = start(&test_cluster, &serving);
        let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/p-example-com";
        until(&[&leader], "it leads", async || server.get(lease).await.is_ok()).await;
        let held = server.get(lease).await.expect("a lease");
        assert_eq!(held["metadata"]["labels"], json!({"team": "storage"}));

        provision(&server).await;
        until(&[&leader], "a volume is made", async || !server.list(VOLUMES).await.is_empty()).await;
        assert_eq!(driver.calls()[0]["request"]["secrets"], json!({"password": SECRET}));
        assert!(!leader.log().contains(SECRET), "secrets are not logged");

        let address = address(&leader);
        assert!(get(&address, "/healthz/leader-election").contains("200 OK"));
        assert!(get(&address, "/readyz").contains("200 OK"));
        for expected in [
            "csi_sidecar_operations_seconds_count{driver_name=\"p.example.com\",method_name=\"/csi.v1.Controller/CreateVolume\",grpc_status_code=\"OK\"} 1",
            "controller_persistentvolumeclaim_provision_total{class=\"k\",source=\"\"} 1",
            "workqueue_adds_total{name=\"claims\"}",
            "csistoragecapacities_desired_goal 0",
            "leader_election_master_status{name=\"p-example-com\"} 1",
        ] {
            // The volume exists before the provisioner has the response and counts it.
            until(&[&leader], expected, async || get(&address, "/my/metrics").contains(expected)).await;
        }

        driver.cut();
        let ended = leader.wait(TIMEOUT).expect("it ends with its driver");
        assert!(!ended.success() && leader.log().contains("the connection to the CSI driver is lost"), "{}", leader.log());
    });
}

#[test]
fn invalid_flags_are_reported_immediately() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    for (flags, expected) in [
        (&["--feature-gates=Nonsense=true"][..], "unrecognized feature gate: Nonsense"),
        (&["--volume-name-prefix="], "--volume-name-prefix cannot be empty"),
        (&["--csi-address=tcp://somewhere:1"], "is not a Unix socket"),
        (&["--nonsense"], "unexpected argument '--nonsense'"),
        // Without a driver; the flags are checked before it is waited for.
        (&["--master=::"], "--master=::"),
        (&["--http-endpoint=nowhere.invalid:1"], "nowhere.invalid:1"),
        (&["--node-deployment"], "NODE_NAME must be set"),
        (&["--enable-capacity"], "NAMESPACE must be set"),
        (
            &["--leader-election", "--leader-election-retry-period=1m"],
            "--leader-election-lease-duration must be longer",
        ),
    ] {
        let mut program = test_cluster
            .start_program(env!("CARGO_BIN_EXE_bindery"), [&["provisioner", "csi", &kubeconfig], flags].concat())
            .expect("it starts");
        let ended = program.wait(TIMEOUT).expect("it ends");
        assert!(!ended.success() && program.log().contains(expected), "{expected} is not in {}", program.log());
    }
}

fn start(test_cluster: &TestCluster, serving: &Serving) -> Running {
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    let address = format!("--csi-address=unix://{}", serving.socket().display());
    let args = [
        "provisioner",
        "csi",
        "-v=9",
        &kubeconfig,
        &address,
        "--leader-election",
        "--leader-election-namespace=default",
        "--leader-election-labels=team:storage",
        "--http-endpoint=localhost:0",
        "--metrics-path=/my/metrics",
        "--feature-gates=Topology=false",
    ];
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
}

/// A claim to provision, whose class references a secret. No binder runs: the test annotates the
/// claim.
async fn provision(server: &Server) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": SECRET},
    });
    server.create("/api/v1/namespaces/default/secrets", &secret).await.expect("a secret");
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "k"}, "provisioner": DRIVER,
        "parameters": {
            "csi.storage.k8s.io/provisioner-secret-name": "s",
            "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
        },
    });
    server.create(CLASSES, &class).await.expect("a class");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "c", "namespace": "default", "annotations": {"volume.kubernetes.io/storage-provisioner": DRIVER},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "k", "resources": {"requests": {"storage": "1Gi"}}},
    });
    server.create(CLAIMS, &claim).await.expect("a claim");
}

/// Its address, which it logs.
fn address(program: &Running) -> String {
    let log = program.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut addresses = lines.filter_map(|line| line["address"].as_str().map(str::to_owned));
    addresses.find(|address| address.starts_with("127.") || address.starts_with('[')).expect("the address is logged")
}

fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).expect("a request");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    answer
}
