//! Every kind of trouble between the controller and its API server at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::{Cluster, eventually, lines};
use crate::history::Seen;
use crate::proxy::{Proxy, Troubles};
use crate::servers::ApiServer;

const PAIRS: usize = 200;
/// Volumes that fit no claim get one write, and those that are bound share four with their claim. Of each bound claim it is then
/// said that no pod uses it.
const WRITES: usize = PAIRS * 5 + PAIRS / 10;
/// Its lease is troubled as well, and held on to.
const PATIENT: [&str; 3] =
    ["--leader-elect-lease-duration=100s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=200ms"];

on_each_server!(refused_slow_and_lost_answers_and_broken_watches_are_no_harm);

async fn refused_slow_and_lost_answers_and_broken_watches_are_no_harm(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let proxy = Proxy::start(cluster.client.clone(), Troubles::All, 4).await;
    let kubeconfig = proxy.kubeconfig(cluster.lab.folder().join("kubeconfig-proxy"));
    cluster.make_pairs("before", PAIRS, 0).await;
    let mut controller = cluster.controller_at(&kubeconfig, &PATIENT);
    cluster.bound(PAIRS).await;

    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    let counts = proxy.counts();
    // A volume whose reservation was refused is marked as Available, which it would not have been; and who does not hear
    // that it has reserved one may reserve another. All else is written once.
    let is_mark = |seen: &Seen| seen.gib >= 5 && seen.phase == "Available" && seen.claim.is_empty();
    let marks = cluster.history.revisions().iter().filter(|revision| is_mark(&revision.seen)).count();
    let (writes, lost) = (count(&counts.writes), count(&counts.lost));
    println!("{writes} writes for {PAIRS} pairs, {marks} of them marks; {lost} answers lost");
    assert!(writes <= WRITES + marks + lost, "{writes} writes, where {WRITES} do, with {marks} marks and {lost} lost");

    // And while it is at work.
    cluster.make_pairs("after", PAIRS, 0).await;
    cluster.check(PAIRS * 2).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is whole");
    assert_eq!(controller.ended(), None, "{}", controller.log());
    let troubles = [
        ("409", &counts.conflicts),
        ("429", &counts.busy),
        ("500", &counts.failures),
        ("slow", &counts.slow),
        ("lost", &counts.lost),
        ("watches cut", &counts.cut),
        ("watches forgotten", &counts.forgotten),
        ("watches not answered", &counts.silent),
    ];
    for (name, trouble) in troubles {
        println!("{name}: {}", count(trouble));
        assert_ne!(count(trouble), 0, "there was no {name}");
    }
}

on_each_server!(a_server_that_forgets_at_once_is_not_asked_for_everything_without_rest);

async fn a_server_that_forgets_at_once_is_not_asked_for_everything_without_rest(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let proxy = Proxy::start(cluster.client.clone(), Troubles::ForgetsAtOnce, 0).await;
    let kubeconfig = proxy.kubeconfig(cluster.lab.folder().join("kubeconfig-proxy"));
    let controller = cluster.controller_at(&kubeconfig, &["--leader-elect=false"]);
    let listed = || -> Vec<Timestamp> {
        let lines = lines(&controller, "listed");
        let moments = lines.iter().filter(|line| line["kind"] == "PersistentVolume");
        moments.map(|line| line["timestamp"].as_str().expect("a moment").parse().expect("a moment")).collect()
    };
    eventually(|| format!("it lists again: {}", controller.log()), || listed().len() >= 5).await;
    let took = listed()[4].duration_since(listed()[0]).unsigned_abs();
    assert!(took > Duration::from_secs(1), "five lists within {took:?}");

    // What is never told by a watch is found all the same.
    cluster.make_pairs("pair", 10, 0).await;
    cluster.check(10).await;
}
