//! Every kind of network fault between the controller and its API server, all at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::{Cluster, eventually, lines};
use crate::history::Seen;
use crate::proxy::{Faults, Proxy};
use crate::servers::ApiServer;

const PAIRS: usize = 200;
/// One write for each volume that fits no claim, four for each bound pair, and one per bound claim
/// that records that no pod uses it.
const WRITES: usize = PAIRS * 5 + PAIRS / 10;
/// Long enough to keep the lease despite the faults.
const PATIENT: [&str; 3] =
    ["--leader-elect-lease-duration=100s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=200ms"];

on_each_server!(rejected_slow_and_lost_responses_and_broken_watches_lose_nothing);

async fn rejected_slow_and_lost_responses_and_broken_watches_lose_nothing(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let proxy = Proxy::start(cluster.client.clone(), Faults::All, 4).await;
    let kubeconfig = proxy.kubeconfig(cluster.test_cluster.folder().join("kubeconfig-proxy"));
    cluster.make_pairs("before", PAIRS, 0).await;
    let mut controller = cluster.controller_at(&kubeconfig, &PATIENT);
    cluster.bound(PAIRS).await;

    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    let counts = proxy.counts();
    // A volume whose reservation was rejected is first marked Available; a controller that lost the
    // response to a reservation may reserve another volume. Everything else is written once.
    let is_mark = |seen: &Seen| seen.gib >= 5 && seen.phase == "Available" && seen.claim.is_empty();
    let marks = cluster.history.revisions().iter().filter(|revision| is_mark(&revision.seen)).count();
    let (writes, lost) = (count(&counts.writes), count(&counts.lost));
    println!("{writes} writes for {PAIRS} pairs, {marks} of them marks; {lost} answers lost");
    assert!(
        writes <= WRITES + marks + lost,
        "{writes} writes instead of {WRITES}, with {marks} marks and {lost} lost responses"
    );

    // Now while the controller is running.
    cluster.make_pairs("after", PAIRS, 0).await;
    cluster.check(PAIRS * 2).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is complete");
    assert_eq!(controller.ended(), None, "{}", controller.log());
    let faults = [
        ("409", &counts.conflicts),
        ("429", &counts.busy),
        ("500", &counts.failures),
        ("slow", &counts.slow),
        ("lost", &counts.lost),
        ("watches cut", &counts.cut),
        ("watches forgotten", &counts.forgotten),
        ("watches not answered", &counts.silent),
    ];
    for (name, fault) in faults {
        println!("{name}: {}", count(fault));
        assert_ne!(count(fault), 0, "no {name} was injected");
    }
}

on_each_server!(lists_back_off_on_a_server_whose_watches_always_expire);

async fn lists_back_off_on_a_server_whose_watches_always_expire(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let proxy = Proxy::start(cluster.client.clone(), Faults::ForgetsAtOnce, 0).await;
    let kubeconfig = proxy.kubeconfig(cluster.test_cluster.folder().join("kubeconfig-proxy"));
    let controller = cluster.controller_at(&kubeconfig, &["--leader-elect=false"]);
    let listed = || -> Vec<Timestamp> {
        let lines = lines(&controller, "listed");
        let moments = lines.iter().filter(|line| line["kind"] == "PersistentVolume");
        moments.map(|line| line["timestamp"].as_str().expect("a timestamp").parse().expect("a timestamp")).collect()
    };
    eventually(|| format!("it lists again: {}", controller.log()), || listed().len() >= 5).await;
    let took = listed()[4].duration_since(listed()[0]).unsigned_abs();
    assert!(took > Duration::from_secs(1), "five lists within {took:?}");

    // Objects that no watch delivers are found by lists.
    cluster.make_pairs("pair", 10, 0).await;
    cluster.check(10).await;
}
