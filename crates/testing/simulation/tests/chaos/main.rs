//! Random worlds, and everything that can go wrong in them: answers that come late, never, or as refusals; word that is delayed;
//! restarts; users who edit, delete and create. The promises hold at every step, and once the faults stop, all comes to rest.

mod guards;
mod ledger;
mod past;
mod places;
mod promises;
mod provisioned;
mod seats;
mod storage;
mod trouble;

use proptest::prelude::*;
use seats::Cast;
use trouble::{Trouble, World};

/// What can stand in a world at the start, or come into it later.
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
    "pvc q-y#u-q-y 1Gi Bound vol=a owner=q guarded bbc bc unused",
    "pvc c#u-c 1Gi Pending guarded fin=example.com/mine deleting",
    "pvc c#u-c 1Gi Bound vol=a bbc bc guarded deleting",
    "pvc d#u-d 1Gi Bound vol=b bbc bc used",
    "pvc d#u-d 1Gi Pending vac=fast fin=example.com/mine",
    "pvc f#u-f 1Gi Pending class= vac=fast guarded",
    "pv  a 1Gi Bound ->c#u-c bbc guarded deleting",
    "pv  b 2Gi Available vac=fast",
    "pv  e 2Gi Available ->f vac=fast",
    "pv  e 2Gi Released ->gone#u-gone guarded fin=example.com/mine deleting",
    "vac fast",
    "vac fast guarded fin=example.com/mine",
    "vac fast guarded deleting",
];

/// Few objects, which have all to do with each other: so that they meet more often.
const CLOSE_LINES: [&str; 11] = [
    "pv  a 1Gi Bound ->c#u-c bbc guarded",
    "pvc c#u-c 1Gi Bound vol=a bbc bc guarded",
    "pvc c#u-c 1Gi Pending class= vac=fast",
    "pvc q-x#u-q-x 1Gi Bound vol=gone owner=q guarded",
    "pvc q-x#u-q-x 1Gi Pending guarded",
    "pod p claim=c",
    "pod p claim=c node=n",
    "pod q claim=c eph=x:1Gi:",
    "pod q eph=x:1Gi: node=n phase=Running",
    "vac fast guarded",
    "pv  a 1Gi Available vac=fast",
];

/// What the scheduler has to do with, and what comes in between.
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
    "pvc c#u-c 2Gi Pending class=late guarded",
    "pvc c#u-c 1Gi Pending class=late vol=b",
    "pvc d#u-d 1Gi Pending class=late",
    "pvc d#u-d 1Gi Pending class=make",
    "pvc d#u-d 1Gi Pending class=make node=n2",
    "pvc f#u-f 1Gi Pending class=make guarded",
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

/// Pods that come and go, and more of them than there is room for.
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

/// Where there is hardly any room.
const CROWDED_ALWAYS: &str = "sc late kubernetes.io/no-provisioner wffc
                              sc make example.com wffc
                              node n1 cpu=1
                              node n2 cpu=1";

/// What is there when pods are placed.
const SCHEDULED_ALWAYS: &str = "sc late kubernetes.io/no-provisioner wffc
                                sc make example.com wffc
                                node n1 cpu=2
                                node n2 cpu=2";

/// Classes that are always there.
const CLASSES: &str = "sc ext example.com/ext
                       sc late kubernetes.io/no-provisioner wffc
                       sc host kubernetes.io/host-path";

fn troubles(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<Trouble>> {
    let trouble = prop_oneof![
        8 => any::<u8>().prop_map(Trouble::Answer),
        6 => any::<u8>().prop_map(Trouble::AnswerLate),
        4 => any::<u8>().prop_map(Trouble::Deliver),
        2 => any::<u8>().prop_map(Trouble::LoseAnswer),
        2 => any::<u8>().prop_map(Trouble::LoseRequest),
        2 => any::<u8>().prop_map(Trouble::Refuse),
        4 => any::<u8>().prop_map(Trouble::Watch),
        4 => any::<u8>().prop_map(Trouble::WatchKind),
        2 => Just(Trouble::Tick),
        1 => any::<u8>().prop_map(Trouble::Restart),
        1 => any::<u8>().prop_map(Trouble::ListAgain),
        4 => prop::sample::select(lines).prop_map(Trouble::Create),
        3 => any::<u8>().prop_map(Trouble::Delete),
        1 => any::<u8>().prop_map(Trouble::ClearClaimRef),
        1 => any::<u8>().prop_map(Trouble::Annotate),
        2 => any::<u8>().prop_map(Trouble::Schedule),
        1 => any::<u8>().prop_map(Trouble::EndPod),
        1 => any::<u8>().prop_map(Trouble::DeletePod),
        1 => any::<u8>().prop_map(Trouble::LetGoOfPod),
        1 => Just(Trouble::CollectGarbage),
        1 => any::<u8>().prop_map(Trouble::TakeOffFinalizer),
    ];
    prop::collection::vec(trouble, 0..60)
}

/// The same where there is a scheduler, whose part nobody else plays; and what nodes and provisioners do.
fn scheduled_troubles(lines: &'static [&'static str]) -> impl Strategy<Value = Vec<Trouble>> {
    let more = prop_oneof![
        3 => any::<u8>().prop_map(Trouble::Provision),
        2 => any::<u8>().prop_map(Trouble::FailToProvision),
        1 => any::<u8>().prop_map(Trouble::Cordon),
    ];
    let is_in_place = |trouble: &Trouble| !matches!(trouble, Trouble::Schedule(_) | Trouble::ClearClaimRef(_));
    let usual = troubles(lines).prop_map(move |all| all.into_iter().filter(is_in_place).collect::<Vec<_>>());
    (usual, prop::collection::vec((any::<prop::sample::Index>(), more), 0..8)).prop_map(|(mut all, more)| {
        for (place, trouble) in more {
            all.insert(place.index(all.len() + 1), trouble);
        }
        all
    })
}

/// How many worlds are tried: many in a quick test, and as many as one likes with `CHAOS_CASES`.
fn cases() -> u32 {
    std::env::var("CHAOS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1500)
}

fn is_scrubbed(line: &str) -> bool {
    line.contains("policy=Recycle")
}

/// What lies outside the API cannot be made conditional on it: one engine may scrub what the other has scrubbed and given away
/// before, or destroy what a user has taken from its claim since. Only the lease keeps that from happening.
fn suits_two(trouble: &Trouble) -> bool {
    let is_too_much =
        matches!(trouble, Trouble::ClearClaimRef(_)) || matches!(trouble, Trouble::Create(line) if is_scrubbed(line));
    !is_too_much
}

/// These engines suffer these troubles, in a world that begins with these lines.
fn check(casts: &[Cast], always: &str, lines: &[&str], troubles: &[Trouble]) {
    check_world(World::start(casts, always, lines), troubles);
}

fn check_world(mut world: World, troubles: &[Trouble]) {
    for trouble in troubles {
        world.suffer(trouble);
    }
    world.heal();
    world.assert_rest();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold_and_all_comes_to_rest(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        troubles in troubles(&LINES),
    ) {
        check(&[Cast::Controllers], CLASSES, &lines, &troubles);
    }

    #[test]
    fn they_hold_where_two_engines_lead(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        troubles in troubles(&LINES),
    ) {
        let lines: Vec<&str> = lines.into_iter().filter(|line| !is_scrubbed(line)).collect();
        let troubles: Vec<Trouble> = troubles.into_iter().filter(suits_two).collect();
        check(&[Cast::Controllers; 2], CLASSES, &lines, &troubles);
    }

    #[test]
    fn what_is_in_use_stays_guarded(
        engines in 1..=2usize,
        lines in prop::collection::vec(prop::sample::select(CLOSE_LINES.to_vec()), 1..5),
        troubles in troubles(&CLOSE_LINES),
    ) {
        check(&[Cast::Controllers; 2][..engines], CLASSES, &lines, &troubles);
    }

    #[test]
    fn pods_are_placed_where_their_volumes_are(
        engines in 1..=2usize,
        lines in prop::collection::vec(prop::sample::select(SCHEDULED_LINES.to_vec()), 1..9),
        troubles in scheduled_troubles(&SCHEDULED_LINES),
    ) {
        check(&[Cast::WithScheduler; 2][..engines], SCHEDULED_ALWAYS, &lines, &troubles);
    }

    #[test]
    fn pods_are_placed_where_there_is_room(
        engines in 1..=2usize,
        lines in prop::collection::vec(prop::sample::select(CROWDED_LINES.to_vec()), 2..8),
        troubles in scheduled_troubles(&CROWDED_LINES),
    ) {
        check(&[Cast::WithScheduler; 2][..engines], CROWDED_ALWAYS, &lines, &troubles);
    }

    #[test]
    fn the_same_trouble_gives_the_same_history(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..7),
        troubles in troubles(&LINES),
    ) {
        let history = || {
            let mut world = World::start(&[Cast::Controllers], CLASSES, &lines);
            troubles.iter().for_each(|trouble| world.suffer(trouble));
            world.heal();
            world.trace
        };
        prop_assert_eq!(history(), history());
    }
}
