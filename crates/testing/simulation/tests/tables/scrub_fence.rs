//! The scrub fence: whenever a recycler pod may write to a volume, the volume is marked, and a
//! marked volume is given to no claim, with any number of active instances.

use bindery_binder::{Binder, rules};
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{LiveReads, OperationOutput, Request, Rule, RuleSet, Task};
use bindery_simulation::run::{Restart, Run, cache_of};
use bindery_simulation::{SimulatedCluster, notation};
use serde_json::json;

use crate::case::{Case, claim, multi, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    vec![
        volume("reclaim.recycle.stop: a user removed the claimRef during a scrub", "volume1")
            .before("pv volume1 1Gi Released policy=Recycle source=hostPath:/tmp/1 scrub=pod-9")
            .after("pv volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1"),
        volume("reclaim.recycle.stop: a user retains a volume during a scrub", "volume1")
            .before("pv volume1 1Gi Released ->claim1#uid1 policy=Retain source=hostPath:/tmp/1 scrub=pod-9")
            .after("pv volume1 1Gi Released ->claim1#uid1 policy=Retain source=hostPath:/tmp/1"),
        volume("reclaim.recycle.stop: the pod cannot be deleted at first", "volume1")
            .before("pv volume1 1Gi Released policy=Recycle scrub=pod-9")
            .script(Task::DeleteRecyclerPod, &[Err("the recycler pod is still terminating")])
            .after("pv volume1 1Gi Released policy=Recycle scrub=pod-9")
            .stable("pv volume1 1Gi Available policy=Recycle"),
        volume("reclaim.recycle.create-pod: the pod of a marked volume is gone", "volume1")
            .before("pv volume1 1Gi Released ->claim1#uid1 bbc policy=Recycle source=hostPath:/tmp/1 scrub=pod-9")
            .after("pv volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1"),
        claim("claim.volume-scrubbing: a claim names a volume that is being scrubbed", "claim1")
            .before(
                "pv  volume1 1Gi Released policy=Recycle source=hostPath:/tmp/1 scrub=pod-9
                 pvc claim1#uid1 1Gi Pending vol=volume1",
            )
            .unchanged()
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 policy=Recycle source=hostPath:/tmp/1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bc",
            ),
        claim("claim.volume-scrubbing: the volume of a bound claim is being scrubbed", "claim1")
            .before(
                "pv  volume1 1Gi Released policy=Recycle source=hostPath:/tmp/1 scrub=pod-9
                 pvc claim1#uid1 1Gi Bound vol=volume1 bc",
            )
            .unchanged()
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 policy=Recycle source=hostPath:/tmp/1 bbc
                 pvc claim1#uid1 1Gi Bound vol=volume1 bc",
            ),
        claim("a volume that is being scrubbed is reserved for a claim", "claim1")
            .before(
                "pv  volume1 1Gi Released ->claim1 policy=Recycle source=hostPath:/tmp/1 scrub=pod-9
                 pvc claim1#uid1 1Gi Pending class=",
            )
            .unchanged()
            .stable(
                "pv  volume1 1Gi Bound ->claim1#uid1 policy=Recycle source=hostPath:/tmp/1
                 pvc claim1#uid1 1Gi Bound vol=volume1 class= bbc bc",
            ),
        multi("two instances recycle a volume, and a waiting claim gets it afterwards")
            .before(
                "pv  volume1 1Gi Released ->gone#uid0 bbc policy=Recycle source=hostPath:/tmp/1
                 pvc claim1#uid1 1Gi Pending class=",
            )
            .after(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc policy=Recycle source=hostPath:/tmp/1
                 pvc claim1#uid1 1Gi Bound vol=volume1 class= bbc bc",
            )
            .with_two_leaders(),
    ]
}

/// The rule that applies to a volume marked with `pod-2`, to an instance that has created or run
/// `pod-1`.
pub fn superseded(task: Task) -> &'static Rule {
    let cluster = notation::parse("pv a 1Gi Released ->gone#u bbc policy=Recycle source=hostPath:/tmp/a scrub=pod-2");
    let mut live_reads = LiveReads::default();
    live_reads.note_outcome(task, Ok(OperationOutput::of(json!({"uid": "pod-1", "replaces": null}))));
    Binder::default().decide(&cache_of(&cluster, &[]), &ObjectKey::volume("a"), &live_reads).rule
}

#[test]
fn only_the_scrub_that_the_volume_is_marked_with_continues_or_ends() {
    for task in [Task::CreateRecyclerPod, Task::Recycle] {
        assert_eq!(superseded(task), &rules::RECYCLE_SUPERSEDED, "{task:?}");
    }
}

/// An engine that recycles a volume up to the moment at which its pod is to run.
fn until_pod_runs(cluster: &mut SimulatedCluster) -> Request {
    let mut engine = Engine::new(Config::default(), vec![Box::new(Binder::default())]);
    let mut inputs: Vec<Input> = Vec::new();
    for kind in Kind::ALL {
        let (version, objects) = cluster.list(kind);
        inputs.push(Input::Listed { kind, version, objects });
    }
    inputs.push(Input::Leader(true));
    while !inputs.is_empty() {
        for output in engine.handle(Moment::default(), inputs.remove(0)) {
            let Output::Send(id, request) = output else { continue };
            if matches!(&request, Request::RunOperation(operation) if operation.task() == Task::Recycle) {
                return request;
            }
            inputs.push(Input::Answered(id, cluster.answer(&request)));
        }
    }
    panic!("no pod is to run: {:#?}", cluster.history);
}

/// S4 without the lease: one instance is about to scrub the volume when another one, which also
/// believes to be the leader, scrubs it and makes it available.
#[test]
fn a_late_scrub_cannot_start_once_the_volume_is_offered_again() {
    let mut cluster = notation::parse("pv a 1Gi Released ->gone#u bbc policy=Recycle source=hostPath:/tmp/a");
    let late = until_pod_runs(&mut cluster);
    assert!(notation::render(&cluster).contains("scrub=pod-1"), "the volume is marked before the pod runs");
    let rules = || vec![Box::new(Binder::default()) as Box<dyn RuleSet + Send>];
    let mut other = Run::start(cluster, &rules, Restart::Never);
    notation::add(&mut other.cluster, "pvc c#c 1Gi Pending class=");
    other.until_stable();
    let rendered = notation::render(&other.cluster);
    assert!(rendered.contains("pv a 1Gi Bound ->c#c"), "the other instance has recycled the volume: {rendered}");

    let answer = other.cluster.answer(&late);
    assert!(matches!(answer, Answer::Done(Err(_))), "{answer:?}");
    assert_eq!(other.cluster.recycler_pods.running().count(), 0, "nothing scrubs the volume of a claim");
}
