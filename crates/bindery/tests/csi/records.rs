//! Provisioning records, seen from outside: what they cost, and what users can do to them.

use std::sync::Arc;

use bindery_csi::fake::FakeDriver;
use bindery_test_cluster::TestCluster;
use serde_json::json;

use crate::election::create_claims;
use crate::server::Server;
use crate::state::{CLAIMS, VOLUMES};
use crate::wait::until;

const DRIVER: &str = "recorded.example.com";
const CLAIM_COUNT: usize = 60;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Each record is created and removed. One by one, that would be 120 writes.
const RECORD_WRITES_MAX: u64 = 20;

/// At default flags: five requests a second.
#[test]
fn records_are_written_in_groups_and_forged_ones_are_ignored() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let driver = Arc::new(FakeDriver::new(DRIVER));
        let serving = driver.serve(&test_cluster.folder().join("recorded.sock")).expect("a driver is served");
        create_claims(&server, DRIVER, CLAIM_COUNT).await;
        forge(&server, "c7").await;
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let address = format!("--csi-address={}", serving.socket().display());
        let args = ["provisioner", "csi", &kubeconfig, &address];
        let provisioner =
            test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts");

        until(&[&provisioner], "all volumes exist", async || server.list(VOLUMES).await.len() == CLAIM_COUNT).await;
        until(&[&provisioner], "no record is left", async || {
            let pages = server.list(CONFIG_MAPS).await;
            pages.iter().all(|page| page["data"].as_object().is_none_or(serde_json::Map::is_empty))
        })
        .await;
        until(&[&provisioner], "the forged finalizer is removed", async || {
            let claim = server.get(&format!("{CLAIMS}/c7")).await.expect("the claim");
            claim["metadata"].get("finalizers").is_none_or(|all| !all.to_string().contains("bindery.dev"))
        })
        .await;
        let forged = driver.calls().into_iter().find(|call| call.to_string().contains("forged"));
        assert_eq!(forged, None, "the driver got a topology that a user made up");

        let metrics = test_cluster.kubectl(["get", "--raw", "/metrics"]).expect("metrics");
        let writes = requests(&metrics, "configmaps", &["POST", "PATCH", "PUT"]);
        assert!(writes <= RECORD_WRITES_MAX, "{CLAIM_COUNT} claims took {writes} writes of records");
        let reads = requests(&metrics, "persistentvolumeclaims", &["GET"]);
        assert!(reads <= 5, "{reads} claims were read that the watch had delivered");
        println!("{CLAIM_COUNT} claims: {writes} writes of records, {reads} reads of claims");
    });
}

/// A user adds what earlier versions wrote before a call, with a topology of their own.
async fn forge(server: &Server, claim: &str) {
    let terms = json!([[["kubernetes.io/hostname", "forged"]]]);
    let intent = json!({
        "provisioner": DRIVER, "node": "forged", "attempt": {"instance": "me", "number": 1},
        "topology": {"requisite": terms, "preferred": terms},
    });
    let metadata = json!({
        "annotations": {"bindery.dev/provisioning": intent.to_string()}, "finalizers": ["bindery.dev/provisioning"],
    });
    server.patch(&format!("{CLAIMS}/{claim}"), &json!({"metadata": metadata})).await.expect("patched");
}

/// The number of requests that an API server has answered, from its metrics.
fn requests(metrics: &str, resource: &str, verbs: &[&str]) -> u64 {
    let is_about = |line: &&str| {
        let has = |label: &str, value: &str| line.contains(&format!("{label}=\"{value}\""));
        line.starts_with("apiserver_request_total{")
            && has("resource", resource)
            && verbs.iter().any(|verb| has("verb", verb))
    };
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0);
    metrics.lines().filter(is_about).map(count).sum::<f64>() as u64
}
