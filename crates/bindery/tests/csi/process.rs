//! The process itself: how it leads, what it tells, what it keeps to itself, and how it ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use bindery_csi::fake::{Fake, Serving};
use bindery_test_cluster::{TIMEOUT, Running, TestCluster};
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES};
use crate::wait::until;

const DRIVER: &str = "p.example.com";
const SECRET: &str = "a-password-that-nobody-may-see";

#[test]
fn it_leads_tells_how_it_goes_keeps_secrets_and_ends_with_its_driver() {
    let Some(lab) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(lab.kubeconfig()).await;
        let driver = Arc::new(Fake::new(DRIVER));
        let serving = driver.serve(&lab.folder().join("process.sock")).expect("a driver is served");
        let mut leader = start(&lab, &serving);
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
            // The volume is there before the provisioner hears that it is, and counts it.
            until(&[&leader], expected, async || get(&address, "/my/metrics").contains(expected)).await;
        }

        driver.cut();
        let ended = leader.wait(TIMEOUT).expect("it ends with its driver");
        assert!(!ended.success() && leader.log().contains("the connection to the CSI driver is lost"), "{}", leader.log());
    });
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let Some(lab) = TestCluster::for_test() else { return };
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
    for (flags, said) in [
        (&["--feature-gates=Nonsense=true"][..], "unrecognized feature gate: Nonsense"),
        (&["--volume-name-prefix="], "--volume-name-prefix cannot be empty"),
        (&["--csi-address=tcp://somewhere:1"], "is no unix socket"),
        (&["--nonsense"], "unexpected argument '--nonsense'"),
        // There is no driver: it is not waited for where nothing can come of it.
        (&["--master=::"], "--master=::"),
        (&["--http-endpoint=nowhere.invalid:1"], "nowhere.invalid:1"),
        (&["--node-deployment"], "NODE_NAME must be set"),
        (&["--enable-capacity"], "NAMESPACE must be set"),
        (
            &["--leader-election", "--leader-election-retry-period=1m"],
            "--leader-election-lease-duration must be longer",
        ),
    ] {
        let mut program = lab
            .start_program(env!("CARGO_BIN_EXE_bindery"), [&["provisioner", "csi", &kubeconfig], flags].concat())
            .expect("it starts");
        let ended = program.wait(TIMEOUT).expect("it ends");
        assert!(!ended.success() && program.log().contains(said), "{said} is not in {}", program.log());
    }
}

fn start(lab: &TestCluster, serving: &Serving) -> Running {
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
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
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
}

/// A claim that asks for a volume, whose class names a secret. No binder runs: the test plays it.
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

/// Where it serves: the port is its own choice, and logged.
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
