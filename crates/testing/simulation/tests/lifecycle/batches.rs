//! Batches: claims of one namespace that are decided about together share one list.

use bindery_simulation::run::{Restart, Run};
use bindery_simulation::{SimulatedCluster, notation};

use crate::case::{claim_key, everyone, pod_key};

fn claims(count: usize) -> SimulatedCluster {
    let lines: String = (0..count).map(|n| format!("pvc c{n:03}#u{n} 1Gi Lost vol=v protected\n")).collect();
    notation::parse(&lines)
}

fn lists(cluster: &SimulatedCluster) -> usize {
    cluster.history.iter().filter(|words| words.starts_with("list Pod default/")).count()
}

#[test]
fn a_hundred_claims_that_are_deleted_when_nobody_looks_take_one_list() {
    let mut cluster = claims(100);
    for n in 0..100 {
        cluster.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(cluster, &everyone, Restart::Never);
    run.until_stable();
    assert_eq!(notation::render(&run.cluster), "");
    assert_eq!(lists(&run.cluster), 1, "{:#?}", run.cluster.history);
    assert_eq!(run.cluster.effects, 100, "and nothing is written twice");
}

/// Word of them comes one by one: the first asks for a list, and the rest wait for the next one, which serves them all.
#[test]
fn a_hundred_claims_that_are_deleted_before_our_eyes_take_two_lists() {
    let mut run = Run::start(claims(100), &everyone, Restart::Never);
    run.until_stable();
    assert_eq!(lists(&run.cluster), 0);
    for n in 0..100 {
        run.cluster.delete(&claim_key(&format!("c{n:03}")));
    }
    run.until_stable();
    assert_eq!(notation::render(&run.cluster), "");
    assert_eq!(lists(&run.cluster), 2, "{:#?}", run.cluster.history);
}

#[test]
fn what_one_list_shows_counts_for_each_claim_by_itself() {
    let mut cluster = claims(100);
    for n in 0..100 {
        cluster.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(cluster, &everyone, Restart::Never);
    // Pods that word has not come of hold every tenth.
    for n in (0..100).step_by(10) {
        notation::add(&mut run.cluster, &format!("pod p{n} claim=c{n:03} node=node1"));
    }
    run.until_idle_without_watch();
    assert_eq!(notation::render(&run.cluster).lines().count(), 10);
    assert_eq!(lists(&run.cluster), 1);
    for n in (0..100).step_by(10) {
        run.cluster.remove(&pod_key(&format!("p{n}")));
    }
    run.until_stable();
    assert_eq!(notation::render(&run.cluster), "");
}
