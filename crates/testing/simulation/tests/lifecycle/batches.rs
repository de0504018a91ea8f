//! Claims of one namespace that are decided together share one live list.

use bindery_simulation::run::{Restart, Run};
use bindery_simulation::{SimulatedCluster, notation};

use crate::case::{all_controllers, claim_key, pod_key};

fn claims(count: usize) -> SimulatedCluster {
    let lines: String = (0..count).map(|n| format!("pvc c{n:03}#u{n} 1Gi Lost vol=v protected\n")).collect();
    notation::parse(&lines)
}

fn lists(cluster: &SimulatedCluster) -> usize {
    cluster.history.iter().filter(|words| words.starts_with("list Pod default/")).count()
}

#[test]
fn claims_deleted_before_the_start_share_one_list() {
    let mut cluster = claims(100);
    for n in 0..100 {
        cluster.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(cluster, &all_controllers, Restart::Never);
    run.until_stable();
    assert_eq!(notation::render(&run.cluster), "");
    assert_eq!(lists(&run.cluster), 1, "{:#?}", run.cluster.history);
    assert_eq!(run.cluster.effects, 100, "no claim is written twice");
}

/// Watch events arrive one by one: the first claim triggers a list, the others share the next one.
#[test]
fn claims_deleted_while_running_share_two_lists() {
    let mut run = Run::start(claims(100), &all_controllers, Restart::Never);
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
fn claims_used_in_the_shared_list_keep_their_finalizer() {
    let mut cluster = claims(100);
    for n in 0..100 {
        cluster.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(cluster, &all_controllers, Restart::Never);
    // Every tenth claim is used by a pod that is not in the cache yet.
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
