//! Chaos tests with provisioners.

use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Response;
use proptest::prelude::*;

use crate::faults::{ChaosRun, Fault};
use crate::participants::Role;
use crate::storage_faults::{Drivers, StorageFault};
use crate::{cases, check, check_run, scheduler_faults};

/// Objects that a provisioner uses, and objects that interfere with it.
const LINES: [&str; 18] = [
    "pvc c#u-c 1Gi Pending class=now",
    "pvc c#u-c 1Gi Pending class=now protected",
    "pvc c#u-c 1Gi Pending class=make",
    "pvc d#u-d 1Gi Pending class=now",
    "pvc d#u-d 1Gi Pending class=make",
    "pvc d#u-d 1Gi Pending class=make node=n2",
    "pod p claim=c cpu=1",
    "pod p claim=c on=n2",
    "pod q claim=d cpu=1",
    "pod q claim=c claim=d",
    "pod s eph=x:1Gi:make",
    "pod s eph=x:1Gi:now cpu=1",
    "sc now csi.example.com",
    "sc make csi.example.com wffc",
    "node n1 cpu=2",
    "node n2 cpu=2",
    "pv b 1Gi Released ->gone#u-gone class=now policy=Delete source=csi:csi.example.com by=csi.example.com \
     fin=external-provisioner.volume.kubernetes.io/finalizer",
    "pv b 1Gi Available class=now policy=Delete source=csi:csi.example.com",
];

/// One claim, and objects that interfere with it.
const CLOSE_LINES: [&str; 5] = [
    "pvc c#u-c 1Gi Pending class=now sp=csi.example.com",
    "pvc c#u-c 1Gi Pending class=now sp=csi.example.com protected",
    "pvc c#u-c 1Gi Pending class=make sp=csi.example.com node=n1",
    "sc now csi.example.com",
    "pv pvc-u-c 1Gi Pending ->c#u-c class=now policy=Delete source=csi:csi.example.com",
];

/// Classes that always exist.
const ALWAYS: &str = "sc now csi.example.com
                      sc make csi.example.com wffc";

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let more = prop_oneof![
        6 => (any::<u8>(), response()).prop_map(|(n, response)| StorageFault::Respond(n, response)).prop_map(Fault::Storage),
        4 => any::<u8>().prop_map(StorageFault::Start).prop_map(Fault::Storage),
        2 => any::<u8>().prop_map(StorageFault::TimeOut).prop_map(Fault::Storage),
        3 => any::<u8>().prop_map(StorageFault::Crash).prop_map(Fault::Storage),
        3 => any::<u8>().prop_map(StorageFault::Finish).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::NeverFinish).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::EditClass).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::ChangePolicy).prop_map(Fault::Storage),
    ];
    let usual = scheduler_faults(&LINES);
    let is_applicable = |fault: &Fault| !matches!(fault, Fault::Provision(_) | Fault::FailToProvision(_));
    let usual = usual.prop_map(move |all| all.into_iter().filter(is_applicable).collect::<Vec<_>>());
    (usual, prop::collection::vec((any::<prop::sample::Index>(), more), 0..24)).prop_map(|(mut all, more)| {
        for (place, fault) in more {
            all.insert(place.index(all.len() + 1), fault);
        }
        all
    })
}

fn response() -> impl Strategy<Value = Response> {
    let after = vec![
        FailureEffect::Nothing,
        FailureEffect::Unknown,
        FailureEffect::Reschedule,
        FailureEffect::Absent,
        FailureEffect::Infeasible,
        FailureEffect::NotAttempted,
    ];
    let fails = prop::sample::select(after).prop_map(Response::Fails);
    prop_oneof![3 => fails, 2 => Just(Response::DoneAnswerLost), 1 => Just(Response::Done)]
}

/// Faults that all affect the same few objects.
fn single_claim_faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        12 => any::<u8>().prop_map(Fault::Answer),
        3 => any::<u8>().prop_map(Fault::AnswerLate),
        4 => any::<u8>().prop_map(Fault::DeliverAnswer),
        1 => any::<u8>().prop_map(Fault::LoseAnswer),
        1 => any::<u8>().prop_map(Fault::LoseRequest),
        4 => (any::<u8>(), response()).prop_map(|(n, response)| StorageFault::Respond(n, response)).prop_map(Fault::Storage),
        3 => any::<u8>().prop_map(StorageFault::Start).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::TimeOut).prop_map(Fault::Storage),
        2 => any::<u8>().prop_map(StorageFault::Crash).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(Fault::Restart),
        2 => any::<u8>().prop_map(StorageFault::Finish).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::NeverFinish).prop_map(Fault::Storage),
        8 => any::<u8>().prop_map(Fault::DeliverEvent),
        3 => Just(Fault::Tick),
        3 => any::<u8>().prop_map(Fault::Delete),
        2 => prop::sample::select(&CLOSE_LINES).prop_map(Fault::Create),
        1 => any::<u8>().prop_map(StorageFault::ChangePolicy).prop_map(Fault::Storage),
        1 => any::<u8>().prop_map(StorageFault::RemoveRecord).prop_map(Fault::Storage),
    ];
    prop::collection::vec(fault, 0..70)
}

/// Nodes with drivers exist from the start.
fn with_nodes<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    ["node n1 cpu=2", "node n2 cpu=2"].into_iter().chain(lines.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// S4, S5, S10, L2, L3.
    #[test]
    fn no_provisioned_storage_is_leaked_or_lost(
        is_apart in any::<bool>(),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 1..7),
        faults in faults(),
    ) {
        let roles: &[Role] = if is_apart { &[Role::WithScheduler, Role::Provisioner] } else { &[Role::All] };
        check(roles, ALWAYS, &with_nodes(&lines), &faults);
    }

    #[test]
    fn no_storage_is_leaked_with_two_provisioners(
        is_apart in any::<bool>(),
        drivers in prop::sample::select(vec![Drivers::One, Drivers::OneEach]),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 1..7),
        faults in faults(),
    ) {
        let apart = [Role::WithScheduler, Role::Provisioner, Role::Provisioner];
        let roles: &[Role] = if is_apart { &apart } else { &[Role::All, Role::All] };
        let mut run = ChaosRun::start(roles, ALWAYS, &with_nodes(&lines));
        run.drivers = drivers;
        check_run(run, &faults);
    }
}

proptest! {
    // Rare interleavings need more cases, which are small here.
    #![proptest_config(ProptestConfig { cases: 4 * cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_storage_of_a_single_claim_is_leaked(
        provisioners in 1..=2usize,
        drivers in prop::sample::select(vec![Drivers::One, Drivers::OneEach]),
        line in prop::sample::select(CLOSE_LINES.to_vec()),
        faults in single_claim_faults(),
    ) {
        let roles = [Role::Controllers, Role::Provisioner, Role::Provisioner];
        let mut run = ChaosRun::start(&roles[..=provisioners], ALWAYS, &["node n1", line]);
        run.drivers = drivers;
        check_run(run, &faults);
    }
}
