//! Worlds with provisioners in them.

use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Says;
use proptest::prelude::*;

use crate::seats::Cast;
use crate::storage::{Drivers, StorageTrouble};
use crate::trouble::{Trouble, World};
use crate::{cases, check, check_world, scheduled_troubles};

/// What a provisioner has to do with, and what comes in between.
const LINES: [&str; 18] = [
    "pvc c#u-c 1Gi Pending class=now",
    "pvc c#u-c 1Gi Pending class=now guarded",
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

/// One claim, and whatever can happen to it.
const CLOSE_LINES: [&str; 5] = [
    "pvc c#u-c 1Gi Pending class=now sp=csi.example.com",
    "pvc c#u-c 1Gi Pending class=now sp=csi.example.com guarded",
    "pvc c#u-c 1Gi Pending class=make sp=csi.example.com node=n1",
    "sc now csi.example.com",
    "pv pvc-u-c 1Gi Pending ->c#u-c class=now policy=Delete source=csi:csi.example.com",
];

/// What is there at the start.
const ALWAYS: &str = "sc now csi.example.com
                      sc make csi.example.com wffc";

fn troubles() -> impl Strategy<Value = Vec<Trouble>> {
    let more = prop_oneof![
        6 => (any::<u8>(), says()).prop_map(|(n, says)| StorageTrouble::Says(n, says)).prop_map(Trouble::Storage),
        4 => any::<u8>().prop_map(StorageTrouble::Begin).prop_map(Trouble::Storage),
        2 => any::<u8>().prop_map(StorageTrouble::GiveUp).prop_map(Trouble::Storage),
        3 => any::<u8>().prop_map(StorageTrouble::Crash).prop_map(Trouble::Storage),
        3 => any::<u8>().prop_map(StorageTrouble::Land).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::Sink).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::EditClass).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::ChangePolicy).prop_map(Trouble::Storage),
    ];
    let usual = scheduled_troubles(&LINES);
    let is_in_place = |trouble: &Trouble| !matches!(trouble, Trouble::Provision(_) | Trouble::FailToProvision(_));
    let usual = usual.prop_map(move |all| all.into_iter().filter(is_in_place).collect::<Vec<_>>());
    (usual, prop::collection::vec((any::<prop::sample::Index>(), more), 0..24)).prop_map(|(mut all, more)| {
        for (place, trouble) in more {
            all.insert(place.index(all.len() + 1), trouble);
        }
        all
    })
}

fn says() -> impl Strategy<Value = Says> {
    let after = vec![
        FailureEffect::Nothing,
        FailureEffect::Unknown,
        FailureEffect::Reschedule,
        FailureEffect::Infeasible,
        FailureEffect::NotAttempted,
    ];
    let fails = prop::sample::select(after).prop_map(Says::Fails);
    prop_oneof![3 => fails, 2 => Just(Says::DoneUnheard), 1 => Just(Says::Done)]
}

/// Troubles that all meet the same few objects.
fn close_troubles() -> impl Strategy<Value = Vec<Trouble>> {
    let trouble = prop_oneof![
        12 => any::<u8>().prop_map(Trouble::Answer),
        3 => any::<u8>().prop_map(Trouble::AnswerLate),
        4 => any::<u8>().prop_map(Trouble::Deliver),
        1 => any::<u8>().prop_map(Trouble::LoseAnswer),
        1 => any::<u8>().prop_map(Trouble::LoseRequest),
        4 => (any::<u8>(), says()).prop_map(|(n, says)| StorageTrouble::Says(n, says)).prop_map(Trouble::Storage),
        3 => any::<u8>().prop_map(StorageTrouble::Begin).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::GiveUp).prop_map(Trouble::Storage),
        2 => any::<u8>().prop_map(StorageTrouble::Crash).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(Trouble::Restart),
        2 => any::<u8>().prop_map(StorageTrouble::Land).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::Sink).prop_map(Trouble::Storage),
        8 => any::<u8>().prop_map(Trouble::Watch),
        3 => Just(Trouble::Tick),
        3 => any::<u8>().prop_map(Trouble::Delete),
        2 => prop::sample::select(&CLOSE_LINES).prop_map(Trouble::Create),
        1 => any::<u8>().prop_map(StorageTrouble::ChangePolicy).prop_map(Trouble::Storage),
        1 => any::<u8>().prop_map(StorageTrouble::LetGoOfClaim).prop_map(Trouble::Storage),
    ];
    prop::collection::vec(trouble, 0..70)
}

/// Nodes are there from the start, with drivers on them.
fn with_nodes<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    ["node n1 cpu=2", "node n2 cpu=2"].into_iter().chain(lines.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_storage_holds_is_forgotten_or_lost(
        is_apart in any::<bool>(),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 1..7),
        troubles in troubles(),
    ) {
        let casts: &[Cast] = if is_apart { &[Cast::WithScheduler, Cast::Provisioner] } else { &[Cast::All] };
        check(casts, ALWAYS, &with_nodes(&lines), &troubles);
    }

    #[test]
    fn nor_where_two_provisioners_work(
        is_apart in any::<bool>(),
        drivers in prop::sample::select(vec![Drivers::One, Drivers::OneEach]),
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 1..7),
        troubles in troubles(),
    ) {
        let apart = [Cast::WithScheduler, Cast::Provisioner, Cast::Provisioner];
        let casts: &[Cast] = if is_apart { &apart } else { &[Cast::All, Cast::All] };
        let mut world = World::start(casts, ALWAYS, &with_nodes(&lines));
        world.drivers = drivers;
        check_world(world, &troubles);
    }
}

proptest! {
    // What takes long to come about is tried more often: these worlds are small.
    #![proptest_config(ProptestConfig { cases: 4 * cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nor_is_anything_of_one_claim(
        provisioners in 1..=2usize,
        drivers in prop::sample::select(vec![Drivers::One, Drivers::OneEach]),
        line in prop::sample::select(CLOSE_LINES.to_vec()),
        troubles in close_troubles(),
    ) {
        let casts = [Cast::Controllers, Cast::Provisioner, Cast::Provisioner];
        let mut world = World::start(&casts[..=provisioners], ALWAYS, &["node n1", line]);
        world.drivers = drivers;
        check_world(world, &troubles);
    }
}
