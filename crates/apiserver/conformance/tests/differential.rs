//! The embedded API server beside a real one: every shape, and no difference that is not known.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_conformance::endpoint::Endpoint;
use bindery_conformance::known::Known;
use bindery_conformance::notation::Library;
use bindery_conformance::suite::{Choice, HISTORY_SECONDS, Outcome, run};
use bindery_conformance::{real, report};
use bindery_test_cluster::TestCluster;

/// Fewer would leave out too much to speak of conformance.
const SHAPES_MIN: usize = 300;
const REQUESTS_MIN: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_a_real_one_does() -> Result<(), String> {
    let Some(mut lab) = TestCluster::for_test() else { return Ok(()) };
    real::forget_the_past(&mut lab)?;
    let outcome = beside_the_embedded(&lab, &Choice::default()).await?;
    assert!(outcome.shapes.len() >= SHAPES_MIN, "{} shapes", outcome.shapes.len());
    assert!(outcome.requests >= REQUESTS_MIN, "{} requests", outcome.requests);
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.txt");
    let known = Known::read(&std::fs::read_to_string(list).map_err(|error| error.to_string())?)?;
    let shapes: BTreeSet<&str> = outcome.shapes.iter().map(String::as_str).collect();
    let wrong = known.check(&shapes, &outcome.differing_shapes());
    assert!(wrong.is_empty(), "{}\n{}", report::by_shape(&outcome), wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_the_chores_that_controllers_do_for_a_real_one() -> Result<(), String> {
    let Some(lab) = TestCluster::for_test() else { return Ok(()) };
    let _controllers = real::start_controllers(&lab)?;
    let outcome = beside_the_embedded(&lab, &Choice { chores: true, ..Choice::default() }).await?;
    assert!(!outcome.shapes.is_empty());
    assert!(outcome.differing.is_empty(), "{}", report::by_shape(&outcome));
    Ok(())
}

/// Runs what is chosen on a lab and on an embedded server.
async fn beside_the_embedded(lab: &TestCluster, choice: &Choice) -> Result<Outcome, String> {
    let kubeconfig = lab.folder().join("embedded");
    let settings = Settings { chores: choice.chores, history_seconds: HISTORY_SECONDS, ..Settings::default() };
    let config = Config { kubeconfig: Some(kubeconfig.clone()), settings, ..Config::in_memory() };
    let embedded = Server::start(config).await?;
    let (left, right) = (Endpoint::of(lab.kubeconfig()).await?, Endpoint::of(&kubeconfig).await?);
    let outcome = run(&Library::own()?, &left, &right, choice).await;
    embedded.stop().await;
    println!("{}", report::counts(&outcome));
    Ok(outcome)
}
