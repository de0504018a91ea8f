//! Compares the embedded API server with kube-apiserver: every shape, and only known differences.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_conformance::endpoint::Endpoint;
use bindery_conformance::known::KnownDifferences;
use bindery_conformance::notation::Library;
use bindery_conformance::suite::{HISTORY_SECONDS, Outcome, Selection, run};
use bindery_conformance::{reference, report};
use bindery_test_cluster::TestCluster;

/// Fewer would test too little.
const SHAPES_MIN: usize = 300;
const REQUESTS_MIN: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn embedded_server_responds_like_kube_apiserver() -> Result<(), String> {
    let Some(mut cluster) = TestCluster::for_test() else { return Ok(()) };
    reference::compact_history(&mut cluster)?;
    let outcome = compare_with_embedded(&cluster, &Selection::default()).await?;
    assert!(outcome.shapes.len() >= SHAPES_MIN, "{} shapes", outcome.shapes.len());
    assert!(outcome.requests >= REQUESTS_MIN, "{} requests", outcome.requests);
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.txt");
    let known = KnownDifferences::read(&std::fs::read_to_string(list).map_err(|error| error.to_string())?)?;
    let shapes: BTreeSet<&str> = outcome.shapes.iter().map(String::as_str).collect();
    let wrong = known.check(&shapes, &outcome.differing_shapes());
    assert!(wrong.is_empty(), "{}\n{}", report::by_shape(&outcome), wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_server_collects_garbage_and_empties_namespaces_like_controllers() -> Result<(), String> {
    let Some(cluster) = TestCluster::for_test() else { return Ok(()) };
    let _controllers = reference::start_controllers(&cluster)?;
    let outcome = compare_with_embedded(&cluster, &Selection { controllers: true, ..Selection::default() }).await?;
    assert!(!outcome.shapes.is_empty());
    assert!(outcome.differing.is_empty(), "{}", report::by_shape(&outcome));
    Ok(())
}

/// Runs the selected shapes on a test cluster and on an embedded server.
async fn compare_with_embedded(cluster: &TestCluster, selection: &Selection) -> Result<Outcome, String> {
    let kubeconfig = cluster.folder().join("embedded");
    let settings =
        Settings { controllers: selection.controllers, history_seconds: HISTORY_SECONDS, ..Settings::default() };
    let config = Config { kubeconfig: Some(kubeconfig.clone()), settings, ..Config::in_memory() };
    let embedded = Server::start(config).await?;
    let (left, right) = (Endpoint::of(cluster.kubeconfig()).await?, Endpoint::of(&kubeconfig).await?);
    let outcome = run(&Library::bundled()?, &left, &right, selection).await;
    embedded.stop().await;
    println!("{}", report::counts(&outcome));
    Ok(outcome)
}
