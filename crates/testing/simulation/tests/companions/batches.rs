//! Batches: claims of one namespace that are decided about together share one list.

use bindery_simulation::run::{Restart, Run};
use bindery_simulation::{World, notation};

use crate::case::{claim_key, everyone, pod_key};

fn claims(count: usize) -> World {
    let lines: String = (0..count).map(|n| format!("pvc c{n:03}#u{n} 1Gi Lost vol=v guarded\n")).collect();
    notation::parse(&lines)
}

fn lists(world: &World) -> usize {
    world.history.iter().filter(|words| words.starts_with("list Pod default/")).count()
}

#[test]
fn a_hundred_claims_that_are_deleted_when_nobody_looks_take_one_list() {
    let mut world = claims(100);
    for n in 0..100 {
        world.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(world, &everyone, Restart::Never);
    run.until_stable();
    assert_eq!(notation::render(&run.world), "");
    assert_eq!(lists(&run.world), 1, "{:#?}", run.world.history);
    assert_eq!(run.world.effects, 100, "and nothing is written twice");
}

/// Word of them comes one by one: the first asks for a list, and the rest wait for the next one, which serves them all.
#[test]
fn a_hundred_claims_that_are_deleted_before_our_eyes_take_two_lists() {
    let mut run = Run::start(claims(100), &everyone, Restart::Never);
    run.until_stable();
    assert_eq!(lists(&run.world), 0);
    for n in 0..100 {
        run.world.delete(&claim_key(&format!("c{n:03}")));
    }
    run.until_stable();
    assert_eq!(notation::render(&run.world), "");
    assert_eq!(lists(&run.world), 2, "{:#?}", run.world.history);
}

#[test]
fn what_one_list_shows_counts_for_each_claim_by_itself() {
    let mut world = claims(100);
    for n in 0..100 {
        world.delete(&claim_key(&format!("c{n:03}")));
    }
    let mut run = Run::start(world, &everyone, Restart::Never);
    // Pods that word has not come of hold every tenth.
    for n in (0..100).step_by(10) {
        notation::add(&mut run.world, &format!("pod p{n} claim=c{n:03} node=node1"));
    }
    run.until_idle_without_watch();
    assert_eq!(notation::render(&run.world).lines().count(), 10);
    assert_eq!(lists(&run.world), 1);
    for n in (0..100).step_by(10) {
        run.world.remove(&pod_key(&format!("p{n}")));
    }
    run.until_stable();
    assert_eq!(notation::render(&run.world), "");
}
