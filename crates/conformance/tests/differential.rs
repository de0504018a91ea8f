//! The embedded API server beside a real one: every shape, and no difference that is not known.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_apiserver::host::{Config, Server};
use bindery_conformance::endpoint::Endpoint;
use bindery_conformance::known::Known;
use bindery_conformance::notation::Library;
use bindery_conformance::report;
use bindery_conformance::suite::{Choice, run};
use bindery_lab::Lab;

/// Fewer would leave out too much to speak of conformance.
const SHAPES_MIN: usize = 300;
const REQUESTS_MIN: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_a_real_one_does() -> Result<(), String> {
    let Some(lab) = Lab::for_test() else { return Ok(()) };
    // Some shapes ask for a past that is gone.
    lab.compact()?;
    let kubeconfig = lab.folder().join("embedded");
    let embedded = Server::start(Config { kubeconfig: Some(kubeconfig.clone()), ..Config::in_memory() }).await?;
    let library = Library::own()?;
    let (left, right) = (Endpoint::of(lab.kubeconfig()).await?, Endpoint::of(&kubeconfig).await?);
    let outcome = run(&library, &left, &right, &Choice::default()).await;
    embedded.stop().await;

    println!("{}", report::counts(&outcome));
    assert!(outcome.shapes.len() >= SHAPES_MIN, "{} shapes", outcome.shapes.len());
    assert!(outcome.requests >= REQUESTS_MIN, "{} requests", outcome.requests);
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.txt");
    let known = Known::read(&std::fs::read_to_string(list).map_err(|error| error.to_string())?)?;
    let shapes: BTreeSet<&str> = outcome.shapes.iter().map(String::as_str).collect();
    let wrong = known.check(&shapes, &outcome.differing_shapes());
    assert!(wrong.is_empty(), "{}\n{}", report::by_shape(&outcome), wrong.join("\n"));
    Ok(())
}
