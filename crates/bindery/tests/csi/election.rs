//! Leader election while the work is slowed down by its rate limit.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_csi::fake::FakeDriver;
use bindery_test_cluster::{TIMEOUT, TestCluster};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES};
use crate::wait::until;

const DRIVER: &str = "busy.example.com";
const HOSTNAME: &str = "kubernetes.io/hostname";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/busy-example-com";
/// At 5 requests a second, these claims keep the provisioner busy for minutes.
const CLAIMS_AT_ONCE: usize = 300;
/// At the default retry period of five seconds and a deadline of ten, a renewal that waits for a
/// minute's work fails before the fourth one.
const RENEWALS: usize = 4;

/// At default flags. Without a connection of its own, a renewal waits behind the writes for all
/// claims, the lease is lost, and the process exits.
#[test]
fn the_lease_is_renewed_and_released_however_much_work_is_queued() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let driver = Arc::new(FakeDriver::new(DRIVER));
        let serving = driver.serve(&test_cluster.folder().join("busy.sock")).expect("a driver is served");
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let address = format!("--csi-address={}", serving.socket().display());
        let election = ["--leader-election", "--leader-election-namespace=default"];
        let args = ["provisioner", "csi", &kubeconfig, &address].into_iter().chain(election);
        let mut provisioner =
            test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts");
        create_claims(&server, DRIVER, CLAIMS_AT_ONCE).await;
        until(&[&provisioner], "storage is created", async || !driver.calls().is_empty()).await;

        let mut renewals = BTreeSet::new();
        while renewals.len() < RENEWALS {
            assert!(provisioner.ended().is_none(), "the provisioner ended:\n{}", provisioner.log());
            let lease = server.get(LEASE).await.expect("the lease");
            assert_eq!(lease["spec"]["leaseTransitions"], 0, "{lease}");
            renewals.insert(lease["spec"]["renewTime"].to_string());
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        let bound = server.list(VOLUMES).await.len();
        assert!(bound < CLAIMS_AT_ONCE, "there is work left, so that the rate limit delays it");

        provisioner.terminate().expect("a signal");
        let ended = provisioner.wait(TIMEOUT).expect("it ends");
        assert!(ended.success(), "{}", provisioner.log());
        let lease = server.get(LEASE).await.expect("the lease");
        assert_eq!(lease["spec"]["holderIdentity"], "", "the lease is released: {}", provisioner.log());
        let version =
            |object: &Value| object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let objects = [server.list(CLAIMS).await, server.list(VOLUMES).await].concat();
        let last: Option<u64> = objects.iter().filter_map(version).max();
        assert!(last < version(&lease), "nothing is written after the lease was released");
    });
}

/// Creates claims to provision. No binder runs: the claims have the binder's annotation already.
pub async fn create_claims(server: &Server, driver: &str, count: usize) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "busy"}, "provisioner": driver,
    });
    server.create(CLASSES, &class).await.expect("a class");
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {HOSTNAME: "n"}},
    });
    server.create("/api/v1/nodes", &node).await.expect("a node");
    let drivers = json!([{"name": driver, "nodeID": "n", "topologyKeys": [HOSTNAME]}]);
    let on_node = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": drivers},
    });
    server.create("/apis/storage.k8s.io/v1/csinodes", &on_node).await.expect("a CSINode");
    let claims = futures::stream::iter(0..count).map(async |number| {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": format!("c{number}"), "namespace": "default",
                "annotations": {"volume.kubernetes.io/storage-provisioner": driver},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "busy",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        server.create(CLAIMS, &claim).await.expect("a claim");
    });
    claims.buffer_unordered(32).collect::<Vec<()>>().await;
}
