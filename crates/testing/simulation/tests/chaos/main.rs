//! Chaos tests: random clusters with late, lost and rejected answers, an overloaded server, low
//! limits, delayed watch events, restarts, leadership changes, two active instances, and users who
//! create, edit and delete objects. The promises of ARCHITECTURE.md are checked at every step. Once
//! the faults stop, the liveness promises must hold, too.

mod binding;
mod fault;
mod faults;
mod history;
mod participants;
mod protection;
mod provisioning;
mod storage_faults;
mod storage_ledger;
mod topology;

use fault::Fault;
use faults::ChaosRun;
use participants::{Limits, Role};
use proptest::prelude::*;

/// Objects that exist from the start or are created later.
const LINES: [&str; 48] = [
    "pv  a 1Gi Pending",
    "pv  a 2Gi Available ->c",
    "pv  a 5Gi Available modes=RWO,ROX,RWX",
    "pv  a 1Gi Bound ->c#u-c bbc",
    "pv  a 1Gi Released ->gone#u-gone policy=Recycle source=hostPath:/tmp/a",
    "pv  b 2Gi Pending",
    "pv  b 3Gi Available ->d#u-d",
    "pv  b 2Gi Bound ->d#u-d policy=Delete source=hostPath:/tmp/b",
    "pv  b 2Gi Released ->gone#u-gone policy=Delete source=hostPath:/tmp/b by=kubernetes.io/host-path fin=kubernetes.io/pv-controller",
    "pv  b 2Gi Available class=late",
    "pv  e 2Gi Available mode=Block",
    "pv  e 2Gi Released ->gone#u-gone",
    "pv  e 2Gi Pending ->c#u-c by=example.com/ext policy=Delete class=ext source=csi:example.com/ext",
    "pvc c#u-c 1Gi Pending",
    "pvc c#u-c 1Gi Pending class=",
    "pvc c#u-c 2Gi Bound vol=a bbc bc",
    "pvc c#u-c 1Gi Pending class=ext",
    "pvc d#u-d 2Gi Pending class=",
    "pvc d#u-d 1Gi Pending vol=a",
    "pvc d#u-d 2Gi Pending class=late",
    "pvc d#u-d 2Gi Pending class=late node=n",
    "pvc d#u-d 1Gi Pending class=host",
    "pvc f#u-f 1Gi Pending class= mode=Block",
    "pvc f#u-f 1Gi Lost vol=e bc",
    "pvc f#u-f 5Gi Pending",
    "pod p claim=d",
    "pod p claim=d node=n phase=Running",
    "pod p claim=c claim=d",
    "pod p claim=c node=n",
    "pod q claim=c node=n phase=Succeeded",
    "pod q eph=x:1Gi:",
    "pod q eph=x:1Gi:late eph=y:1Gi: node=n",
    "pod r eph=z:1Gi:host claim=q-x node=n",
    "pvc q-x#u-q-x 1Gi Pending",
    "pvc q-x#u-q-x 1Gi Pending owner=q",
    "pvc q-y#u-q-y 1Gi Bound vol=a owner=q protected bbc bc unused",
    "pvc c#u-c 1Gi Pending protected fin=example.com/mine deleting",
    "pvc c#u-c 1Gi Bound vol=a bbc bc protected deleting",
    "pvc d#u-d 1Gi Bound vol=b bbc bc used",
    "pvc d#u-d 1Gi Pending vac=fast fin=example.com/mine",
    "pvc f#u-f 1Gi Pending class= vac=fast protected",
    "pv  a 1Gi Bound ->c#u-c bbc protected deleting",
    "pv  b 2Gi Available vac=fast",
    "pv  e 2Gi Available ->f vac=fast",
    "pv  e 2Gi Released ->gone#u-gone protected fin=example.com/mine deleting",
    "vac fast",
    "vac fast protected fin=example.com/mine",
    "vac fast protected deleting",
];

/// A few related objects, which interact more often.
const CLOSE_LINES: [&str; 11] = [
    "pv  a 1Gi Bound ->c#u-c bbc protected",
    "pvc c#u-c 1Gi Bound vol=a bbc bc protected",
    "pvc c#u-c 1Gi Pending class= vac=fast",
    "pvc q-x#u-q-x 1Gi Bound vol=gone owner=q protected",
    "pvc q-x#u-q-x 1Gi Pending protected",
    "pod p claim=c",
    "pod p claim=c node=n",
    "pod q claim=c eph=x:1Gi:",
    "pod q eph=x:1Gi: node=n phase=Running",
    "vac fast protected",
    "pv  a 1Gi Available vac=fast",
];

/// Volumes that are recycled, and claims that wait for them.
const RECYCLED_LINES: [&str; 8] = [
    "pv  a 1Gi Released ->gone#u-gone policy=Recycle source=hostPath:/tmp/a",
    "pv  a 1Gi Released ->gone#u-gone bbc policy=Recycle source=hostPath:/tmp/a",
    "pv  a 1Gi Bound ->c#u-c bbc policy=Recycle source=hostPath:/tmp/a",
    "pvc c#u-c 1Gi Bound vol=a bbc bc",
    "pvc c#u-c 1Gi Pending class=",
    "pvc d#u-d 1Gi Pending class=",
    "pvc d#u-d 1Gi Pending vol=a",
    "pod p claim=c node=n",
];

/// Objects that the scheduler uses, and objects that interfere with it.
const SCHEDULED_LINES: [&str; 35] = [
    "pv  a 1Gi Available class=late on=n1",
    "pv  a 1Gi Available class=late on=n2",
    "pv  a 1Gi Available class=late ->c on=n1",
    "pv  b 1Gi Available class=late on=n2",
    "pv  b 2Gi Available class=late on=n1",
    "pv  e 2Gi Available class=late on=n2",
    "pv  e 2Gi Available class=late",
    "pv  g 1Gi Available class=",
    "pv  g 1Gi Available class= on=n2",
    "pvc c#u-c 1Gi Pending class=late",
    "pvc c#u-c 2Gi Pending class=late protected",
    "pvc c#u-c 1Gi Pending class=late vol=b",
    "pvc d#u-d 1Gi Pending class=late",
    "pvc d#u-d 1Gi Pending class=make",
    "pvc d#u-d 1Gi Pending class=make node=n2",
    "pvc f#u-f 1Gi Pending class=make protected",
    "pvc f#u-f 1Gi Pending class=",
    "pod p claim=c cpu=1",
    "pod p claim=c claim=d",
    "pod p claim=c on=n2",
    "pod p claim=c claim=d claim=f cpu=1",
    "pod q claim=d cpu=1",
    "pod q claim=d on=n1",
    "pod q claim=c",
    "pod r claim=f cpu=1",
    "pod r claim=f priority=7",
    "pod r claim=c claim=f cpu=2",
    "pod s cpu=2",
    "pod s cpu=1 priority=7",
    "pod s eph=x:1Gi:make",
    "pod s eph=x:1Gi:late cpu=1",
    "pod t claim=c node=n2",
    "node n1 cpu=2",
    "node n2 cpu=2",
    "node n3 cpu=1",
];

/// More pods than fit on the nodes.
const CROWDED_LINES: [&str; 9] = [
    "pod p claim=c cpu=1",
    "pod q claim=d cpu=1",
    "pod r cpu=1",
    "pod s cpu=1",
    "pod s cpu=1 priority=7",
    "pvc c#u-c 1Gi Pending class=make",
    "pvc c#u-c 1Gi Pending class=make node=n2",
    "pvc d#u-d 1Gi Pending class=late",
    "pv  a 1Gi Available class=late on=n2",
];

/// Nodes with little CPU, and classes.
const CROWDED_ALWAYS: &str = "sc late kubernetes.io/no-provisioner wffc
                              sc make example.com wffc
                              node n1 cpu=1
                              node n2 cpu=1";

/// Nodes with enough CPU, and classes.
const SCHEDULED_ALWAYS: &str = "sc late kubernetes.io/no-provisioner wffc
                                sc make example.com wffc
                                node n1 cpu=2
                                node n2 cpu=2";

/// Classes that always exist.
const CLASSES: &str = "sc ext example.com/ext
                       sc late kubernetes.io/no-provisioner wffc
                       sc host kubernetes.io/host-path";

/// Faults of API server, engines and users.
fn usual_faults(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        8 => any::<u8>().prop_map(Fault::Answer),
        6 => any::<u8>().prop_map(Fault::AnswerLate),
        4 => any::<u8>().prop_map(Fault::DeliverAnswer),
        2 => any::<u8>().prop_map(Fault::LoseAnswer),
        2 => any::<u8>().prop_map(Fault::LoseRequest),
        2 => any::<u8>().prop_map(Fault::RejectRequest),
        4 => any::<u8>().prop_map(Fault::DeliverEvent),
        4 => any::<u8>().prop_map(Fault::DeliverEventOfKind),
        2 => Just(Fault::Tick),
        1 => any::<u8>().prop_map(Fault::Restart),
        1 => any::<u8>().prop_map(Fault::Relist),
        4 => prop::sample::select(lines).prop_map(Fault::Create),
        3 => any::<u8>().prop_map(Fault::Delete),
        1 => any::<u8>().prop_map(Fault::ClearClaimRef),
        1 => any::<u8>().prop_map(Fault::Annotate),
        2 => any::<u8>().prop_map(Fault::Schedule),
        1 => any::<u8>().prop_map(Fault::CompletePod),
        1 => any::<u8>().prop_map(Fault::DeletePod),
        1 => any::<u8>().prop_map(Fault::FinishPodDeletion),
        1 => Just(Fault::CollectGarbage),
        1 => any::<u8>().prop_map(Fault::RemoveFinalizer),
    ];
    prop::collection::vec(fault, 0..60)
}

/// The same with an overloaded server, leadership changes, and scrubs that take their time.
fn faults(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<Fault>> {
    let more = prop_oneof![
        2 => any::<u8>().prop_map(Fault::RetryAfter),
        3 => any::<u8>().prop_map(Fault::StartScrub),
        2 => any::<u8>().prop_map(Fault::ChangeLeader),
    ];
    insert(usual_faults(lines), more, 12)
}

/// The usual faults with a scheduler, and with faults of nodes and of the external provisioner.
fn scheduler_faults(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<Fault>> {
    let more = prop_oneof![
        3 => any::<u8>().prop_map(Fault::Provision),
        2 => any::<u8>().prop_map(Fault::FailToProvision),
        1 => any::<u8>().prop_map(Fault::Cordon),
    ];
    let is_applicable = |fault: &Fault| !matches!(fault, Fault::Schedule(_) | Fault::ClearClaimRef(_));
    let usual = usual_faults(lines).prop_map(move |all| all.into_iter().filter(is_applicable).collect::<Vec<_>>());
    insert(usual, more, 8)
}

/// Inserts up to `count` more faults at any place.
fn insert(
    usual: impl Strategy<Value = Vec<Fault>>,
    more: impl Strategy<Value = Fault>,
    count: usize,
) -> impl Strategy<Value = Vec<Fault>> {
    (usual, prop::collection::vec((any::<prop::sample::Index>(), more), 0..count)).prop_map(|(mut all, more)| {
        for (place, fault) in more {
            all.insert(place.index(all.len() + 1), fault);
        }
        all
    })
}

/// The number of cases; more can be requested with `CHAOS_CASES`.
fn cases() -> u32 {
    std::env::var("CHAOS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1500)
}

/// Limits that are not reached, and limits that are.
fn limits() -> impl Strategy<Value = Limits> {
    prop::sample::select(vec![Limits::None, Limits::Low, Limits::One])
}

/// Runs these participants with these faults, in a cluster with these objects.
fn check(roles: &[Role], always: &str, lines: &[&str], faults: &[Fault]) {
    check_run(ChaosRun::start(roles, always, lines), faults);
}

fn check_run(mut run: ChaosRun, faults: &[Fault]) {
    for fault in faults {
        run.apply(fault);
    }
    run.recover();
    run.assert_stable();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn binding_and_protection_promises_hold_and_the_cluster_becomes_stable(
        limits in limits(),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        faults in faults(&LINES),
    ) {
        check_run(ChaosRun::start(&[Role::Controllers], CLASSES, &lines).with_limits(limits), &faults);
    }

    /// S14: the promises do not depend on there being one leader.
    #[test]
    fn promises_hold_with_two_leaders(
        limits in limits(),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        faults in faults(&LINES),
    ) {
        check_run(ChaosRun::start(&[Role::Controllers; 2], CLASSES, &lines).with_limits(limits), &faults);
    }

    /// S4, S14: no volume is scrubbed while a claim may use it.
    #[test]
    fn volumes_are_scrubbed_only_while_no_claim_can_get_them(
        engines in 1..=2usize,
        limits in limits(),
        lines in prop::collection::vec(prop::sample::select(RECYCLED_LINES.to_vec()), 1..5),
        faults in faults(&RECYCLED_LINES),
    ) {
        check_run(ChaosRun::start(&[Role::Controllers; 2][..engines], CLASSES, &lines).with_limits(limits), &faults);
    }

    /// S12.
    #[test]
    fn objects_in_use_keep_their_protection_finalizer(
        engines in 1..=2usize,
        limits in limits(),
        lines in prop::collection::vec(prop::sample::select(CLOSE_LINES.to_vec()), 1..5),
        faults in faults(&CLOSE_LINES),
    ) {
        check_run(ChaosRun::start(&[Role::Controllers; 2][..engines], CLASSES, &lines).with_limits(limits), &faults);
    }

    /// S6, S8, S9.
    #[test]
    fn pods_are_scheduled_where_their_volumes_are_reachable(
        engines in 1..=2usize,
        lines in prop::collection::vec(prop::sample::select(SCHEDULED_LINES.to_vec()), 1..9),
        faults in scheduler_faults(&SCHEDULED_LINES),
    ) {
        check(&[Role::WithScheduler; 2][..engines], SCHEDULED_ALWAYS, &lines, &faults);
    }

    #[test]
    fn pods_are_scheduled_within_node_capacity(
        engines in 1..=2usize,
        lines in prop::collection::vec(prop::sample::select(CROWDED_LINES.to_vec()), 2..8),
        faults in scheduler_faults(&CROWDED_LINES),
    ) {
        check(&[Role::WithScheduler; 2][..engines], CROWDED_ALWAYS, &lines, &faults);
    }

    /// S7: the same input gives the same decisions, in whatever order the objects were listed.
    #[test]
    fn same_faults_give_same_history(
        seed in any::<u64>(),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        faults in faults(&LINES),
    ) {
        let history = |order| {
            let mut run = ChaosRun::start_in_order(order, &[Role::Controllers], CLASSES, &lines);
            faults.iter().for_each(|fault| run.apply(fault));
            run.recover();
            run.trace
        };
        prop_assert_eq!(history(None), history(Some(seed)));
    }
}
