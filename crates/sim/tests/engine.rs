//! The engine by itself: order, limits, back-off, wakes, answers that come late or never. Driven by hand, input by input.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::{Answer, Config, Decided, Engine, Input, Moment, Output, Refusal, RequestId};
use bindery_sim::{World, notation};
use bindery_verdict::{Notice, Request, Timed};
use bindery_volumes::{ClaimKey, Kind, Object, ObjectKey};

/// An engine, a world that answers only when told to, and a clock that moves only when told to.
struct Hand {
    engine: Engine,
    world: World,
    now: Duration,
    /// Requests that were sent and not answered.
    open: BTreeMap<RequestId, Request>,
    decided: Vec<Decided>,
    notices: Vec<Notice>,
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

impl Hand {
    fn idle(state: &str, config: Config) -> Hand {
        Hand {
            engine: Engine::new(config, vec![Box::new(Binder::default())]),
            world: notation::parse(state),
            now: Duration::ZERO,
            open: BTreeMap::new(),
            decided: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn start(state: &str) -> Hand {
        Hand::with(state, Config::default())
    }

    fn with(state: &str, config: Config) -> Hand {
        let mut hand = Hand::idle(state, config);
        hand.list_all();
        hand.tell(Input::Leading(true));
        hand
    }

    fn list_all(&mut self) {
        self.world.untold.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(Input::Listed { kind, version, objects });
        }
    }

    fn tell(&mut self, input: Input) {
        for output in self.engine.handle(Moment(self.now), input) {
            match output {
                Output::Send(id, request) => {
                    if !matches!(request, Request::Read(_)) {
                        let target = request.target();
                        let is_free =
                            self.open.values().all(|open| matches!(open, Request::Read(_)) || open.target() != target);
                        assert!(is_free, "two requests change {target} at once");
                    }
                    self.open.insert(id, request);
                }
                Output::Publish(notice) => self.notices.push(notice),
                Output::Decided(decided) => self.decided.push(decided),
                Output::TickAt(_) | Output::Measured(_) => {}
            }
        }
    }

    /// Adds to the world, and has the watch tell of it.
    fn add(&mut self, lines: &str) {
        notation::add(&mut self.world, lines);
        self.watch();
    }

    /// Has the watch tell what it has not told yet.
    fn watch(&mut self) {
        while let Some(told) = self.world.untold.pop_front() {
            self.tell(match told {
                bindery_sim::Told::Changed(object) => Input::Watched(object),
                bindery_sim::Told::Gone(key, version) => Input::Gone { key, version },
            });
        }
    }

    fn tick(&mut self, after: Duration) {
        self.now += after;
        self.tell(Input::Tick);
    }

    /// The one open request.
    fn only(&self) -> (RequestId, Request) {
        assert_eq!(self.open.len(), 1, "one request is open: {:?}", self.open);
        let (id, request) = self.open.iter().next().expect("one");
        (*id, request.clone())
    }

    /// Which step the one open request is.
    fn step(&self) -> &'static str {
        match self.only().1 {
            Request::Write(write) => write.purpose.name,
            Request::Read(_) => "read",
            Request::Create(_) | Request::Delete(_) | Request::Operate(_) => "other",
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        let (id, _) = self.only();
        self.open.remove(&id);
        self.tell(Input::Answered(id, Answer::Refused(refusal)));
    }

    /// Has the world answer a request, and tells the answer.
    fn answer(&mut self, id: RequestId) {
        let request = self.open.remove(&id).expect("an open request");
        let answer = self.world.answer(&request);
        self.tell(Input::Answered(id, answer));
    }

    fn answer_only(&mut self) {
        self.answer(self.only().0);
    }

    fn answer_all(&mut self) {
        while let Some((&id, _)) = self.open.iter().next() {
            self.answer(id);
            self.watch();
        }
    }

    /// The keys that were decided about since the last call.
    fn decided_keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = self.decided.drain(..).map(|decided| decided.key.name.to_string()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn rendered(&self) -> String {
        notation::render(&self.world)
    }
}

const PAIR: &str = "pv v 1Gi Available
                    pvc c#u 1Gi Pending";
const PAIR_BOUND: &str = "pv v 1Gi Bound ->c#u bbc
                          pvc c#u 1Gi Bound vol=v bbc bc";

// === Starting, leading ===

#[test]
fn nothing_is_decided_before_everything_is_known_and_it_leads() {
    let mut hand = Hand::idle(PAIR, Config::default());
    hand.tell(Input::Leading(true));
    for kind in [Kind::Claim, Kind::Volume, Kind::Class, Kind::Pod] {
        let (version, objects) = hand.world.list(kind);
        hand.tell(Input::Listed { kind, version, objects });
        assert!(hand.decided.is_empty() && hand.open.is_empty());
    }
    hand.tell(Input::Listed { kind: Kind::Node, version: 9, objects: vec![] });
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn who_stops_leading_sends_nothing_more_and_who_leads_again_goes_on() {
    let mut hand = Hand::start(PAIR);
    hand.tell(Input::Leading(false));
    hand.answer_only();
    hand.watch();
    assert!(hand.open.is_empty(), "the answer was taken in, and nothing sent");
    hand.tick(Duration::from_secs(100));
    assert!(hand.open.is_empty());
    hand.tell(Input::Leading(true));
    assert_eq!(hand.step(), "bind.2-mark-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_bind_is_four_writes_one_after_the_other() {
    let mut hand = Hand::start(PAIR);
    let mut steps = Vec::new();
    while !hand.open.is_empty() {
        steps.push(hand.step());
        hand.answer_only();
        hand.watch();
    }
    assert_eq!(steps, ["bind.1-reserve-volume", "bind.2-mark-volume", "bind.3-point-claim", "bind.4-mark-claim"]);
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(hand.engine.pending(), 0, "all keys are at rest");
}

#[test]
fn a_new_volume_goes_to_a_waiting_claim_without_being_marked_available() {
    let mut hand = Hand::start("pvc c#u 1Gi Pending");
    hand.add("pv v 1Gi Pending");
    assert_eq!(hand.step(), "bind.1-reserve-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(hand.world.effects, 4);
}

// === Limits ===

fn many(pairs: usize) -> String {
    (0..pairs).map(|n| format!("pv v{n:02} 1Gi Available\npvc c{n:02}#u{n} 1Gi Pending\n")).collect()
}

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let mut hand = Hand::with(&many(20), Config { requests_max: 3, ..Config::default() });
    let mut most = 0;
    while let Some((&id, _)) = hand.open.iter().next() {
        most = most.max(hand.open.len());
        hand.answer(id);
        hand.watch();
    }
    assert_eq!(most, 3);
    assert_eq!(hand.rendered().matches(" Bound ").count(), 40);
}

#[test]
fn claims_of_one_size_each_get_a_volume_of_their_own_however_late_the_answers() {
    let mut hand = Hand::start(&many(20));
    assert_eq!(hand.open.len(), 20, "all are under way at once, each with a volume of its own");
    // The last asked is answered first.
    while let Some((&id, _)) = hand.open.iter().next_back() {
        hand.answer(id);
    }
    hand.watch();
    hand.answer_all();
    assert_eq!(hand.rendered().matches(" Bound ").count(), 40);
    assert_eq!(hand.world.effects, 80);
}

#[test]
fn a_claim_waits_for_the_write_under_way_on_its_volume_and_keeps_others_from_it() {
    // The volume is being marked Available when the claims come.
    let mut hand = Hand::start("pv v 1Gi Pending");
    assert_eq!(hand.step(), "status.volume");
    hand.add("pvc c#u 1Gi Pending");
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.open.len(), 1, "the volume is changed by one request at a time");
    hand.answer_all();
    assert_eq!(
        hand.rendered(),
        notation::normalize(
            "pv v 1Gi Bound ->c#u bbc
             pvc c#u 1Gi Bound vol=v bbc bc
             pvc d#w 1Gi Pending"
        )
    );
    assert!(!hand.world.history.iter().any(|entry| entry.contains("modified")), "{:#?}", hand.world.history);
}

#[test]
fn no_more_operations_are_under_way_than_allowed() {
    let released: String = (0..4)
        .map(|n| format!("pv v{n} 1Gi Released ->c{n}#u{n} policy=Recycle source=hostPath:/tmp/v{n}\n"))
        .collect();
    let mut hand = Hand::with(&released, Config { operations_max: 1, ..Config::default() });
    let mut scrubbed = 0;
    while !hand.open.is_empty() {
        let operations = hand.open.values().filter(|request| matches!(request, Request::Operate(_))).count();
        assert!(operations <= 1);
        scrubbed += operations;
        // Reads first: they must not wait behind an operation.
        let next = hand.open.iter().find(|(_, r)| !matches!(r, Request::Operate(_))).or(hand.open.iter().next());
        let id = *next.expect("an open request").0;
        hand.answer(id);
        hand.watch();
    }
    assert!(scrubbed >= 4);
    assert_eq!(hand.rendered().matches(" Available ").count(), 4, "{}", hand.rendered());
}

// === Back-off ===

const NO: fn() -> Refusal = || Refusal::Error("no".into());

#[test]
fn a_refused_write_is_tried_again_after_twice_as_long_each_time() {
    let mut hand = Hand::start(PAIR);
    for millis in [5, 10, 20, 40] {
        hand.refuse(NO());
        hand.tick(Duration::from_millis(millis - 1));
        assert!(hand.open.is_empty(), "not before {millis} ms");
        hand.tick(Duration::from_millis(1));
        assert_eq!(hand.step(), "bind.1-reserve-volume");
    }
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

fn refused(hand: &mut Hand, times: usize) {
    for _ in 0..times {
        hand.refuse(NO());
        hand.tick(Duration::from_secs(60));
    }
    hand.refuse(NO());
    assert!(hand.open.is_empty());
}

#[test]
fn a_change_that_matters_ends_a_back_off() {
    let mut hand = Hand::start(PAIR);
    refused(&mut hand, 8);
    hand.world.edit(&claim_key("c"), serde_json::json!({"spec": {"accessModes": ["ReadWriteOnce"]}}));
    hand.watch();
    assert_eq!(hand.step(), "bind.1-reserve-volume", "at once");
    hand.refuse(NO());
    hand.tick(Duration::from_millis(5));
    assert_eq!(hand.step(), "bind.1-reserve-volume", "and the waiting begins anew");
}

#[test]
fn a_change_that_does_not_matter_neither_ends_nor_lengthens_a_back_off() {
    let mut hand = Hand::with(PAIR, Config { resync: Duration::from_secs(3600), ..Config::default() });
    refused(&mut hand, 4);
    // The fifth failure in a row: 80 ms.
    for _ in 0..10 {
        hand.world.edit(&claim_key("c"), serde_json::json!({"metadata": {"annotations": {"foreign": "x"}}}));
        hand.watch();
        assert!(hand.open.is_empty(), "rules do not read that annotation");
    }
    hand.tick(Duration::from_millis(80));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn a_resync_neither_ends_nor_lengthens_a_back_off() {
    let mut hand = Hand::with(PAIR, Config { resync: Duration::from_millis(10), ..Config::default() });
    for _ in 0..4 {
        hand.refuse(NO());
        while hand.open.is_empty() {
            hand.tick(Duration::from_millis(1));
        }
    }
    hand.refuse(NO());
    let resyncs = hand.engine.stats().resyncs;
    for _ in 0..79 {
        hand.tick(Duration::from_millis(1));
        assert!(hand.open.is_empty());
    }
    assert!(hand.engine.stats().resyncs > resyncs + 5);
    hand.tick(Duration::from_millis(1));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn a_server_that_asks_for_patience_gets_it() {
    let mut hand = Hand::start(PAIR);
    hand.refuse(Refusal::Later(Duration::from_secs(3), "too many requests".into()));
    hand.tick(Duration::from_millis(2999));
    assert!(hand.open.is_empty());
    hand.tick(Duration::from_millis(1));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn what_one_claim_cannot_get_another_can() {
    let mut hand = Hand::start(PAIR);
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.open.len(), 1, "the volume is spoken for");
    hand.refuse(NO());
    assert_eq!(hand.only().1.target(), ObjectKey::volume("v"));
    hand.answer_all();
    assert_eq!(hand.rendered().matches(" Bound ").count(), 2, "one of the two has it:\n{}", hand.rendered());
}

// === Answers ===

#[test]
fn after_a_conflict_the_object_is_read_and_decided_about_again() {
    let mut hand = Hand::start(PAIR);
    // Somebody else takes the volume first, and word of it has not come.
    hand.world.edit(
        &ObjectKey::volume("v"),
        serde_json::json!({"spec": {"claimRef": {"namespace": "default", "name": "d", "uid": "w"}}}),
    );
    hand.answer_only();
    assert_eq!(hand.step(), "read");
    hand.answer_only();
    hand.watch();
    hand.answer_all();
    let end = hand.rendered();
    assert!(end.contains("->d#w") && end.contains("pvc c#u 1Gi Pending"), "{end}");
}

#[test]
fn a_lost_answer_is_looked_after_and_the_write_not_repeated() {
    let mut hand = Hand::start(PAIR);
    let (_, request) = hand.only();
    hand.world.answer(&request);
    hand.refuse(Refusal::Lost);
    assert_eq!(hand.step(), "read");
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.step(), "read", "until it is known, the volume is nobody else's");
    hand.answer_only();
    assert_eq!(hand.step(), "bind.2-mark-volume");
    hand.answer_all();
    assert_eq!(hand.world.history.iter().filter(|entry| entry.contains("reserve")).count(), 1);
}

#[test]
fn a_lost_write_that_was_not_carried_out_is_sent_again() {
    let mut hand = Hand::start(PAIR);
    hand.refuse(Refusal::Lost);
    hand.answer_only();
    assert!(hand.open.is_empty(), "nothing is new: it waits a moment");
    hand.tick(Duration::from_millis(5));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_late_answer_does_not_bring_back_what_is_gone() {
    let mut hand = Hand::start(PAIR);
    let (id, request) = hand.only();
    let answer = hand.world.answer(&request);
    hand.world.remove(&ObjectKey::volume("v"));
    hand.watch();
    hand.open.clear();
    hand.tell(Input::Answered(id, answer));
    assert!(hand.engine.known().volume(&"v".into()).is_none());
    assert!(hand.open.is_empty(), "{:?}", hand.open);
}

#[test]
fn an_answer_to_no_request_is_ignored() {
    let mut hand = Hand::start(PAIR);
    hand.tell(Input::Answered(RequestId(99), Answer::Deleted(None)));
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_stale_list_takes_nothing_away_and_brings_nothing_back() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    let old = hand.world.list(Kind::Claim);
    hand.add("pvc e#x 1Gi Pending");
    hand.world.remove(&claim_key("c"));
    hand.watch();
    hand.answer_all();
    let known = |hand: &Hand| {
        (hand.engine.known().count(Kind::Claim), hand.engine.known().claim(&ClaimKey::new("default", "c")).is_some())
    };
    assert_eq!(known(&hand), (1, false));
    hand.tell(Input::Listed { kind: Kind::Claim, version: old.0, objects: old.1 });
    assert_eq!(known(&hand), (1, false), "c is gone and e is there");
}

#[test]
fn a_list_shows_what_the_watch_missed() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    hand.world.remove(&claim_key("c"));
    hand.list_all();
    hand.answer_all();
    assert_eq!(hand.rendered(), "pv v 1Gi Released ->c#u bbc");
}

#[test]
fn a_claim_created_again_under_its_name_is_another_claim() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    // Between two lists the claim goes and comes back.
    hand.world.remove(&claim_key("c"));
    notation::add(&mut hand.world, "pvc c#u2 1Gi Pending");
    hand.list_all();
    hand.answer_all();
    assert_eq!(
        hand.rendered(),
        notation::normalize(
            "pv v 1Gi Released ->c#u bbc
             pvc c#u2 1Gi Pending"
        )
    );
}

// === Wakes ===

const WAITING: &str = "sc  slow example.com/slow
                       sc  late example.com/late wffc
                       pvc a#1 1Gi Pending class=fast
                       pvc b#2 1Gi Pending class=fast
                       pvc c#3 1Gi Pending class=slow
                       pvc d#4 1Gi Pending class=late
                       pvc e#5 9Gi Pending class=
                       pvc f#6 5Gi Pending class=
                       pvc g#7 1Gi Pending vol=v7
                       pvc h#8 1Gi Pending
                       pv  w 1Gi Bound ->x#9 bbc";

fn waiting() -> Hand {
    let mut hand = Hand::start(WAITING);
    hand.answer_all();
    hand.decided.clear();
    hand.notices.clear();
    hand
}

#[test]
fn a_class_that_appears_wakes_exactly_its_claims() {
    let mut hand = waiting();
    hand.add("sc fast example.com/fast");
    assert_eq!(hand.decided_keys(), ["a", "b"]);
}

#[test]
fn a_default_class_wakes_exactly_the_claims_that_say_nothing() {
    let mut hand = waiting();
    hand.add("sc usual example.com/usual default");
    assert_eq!(hand.decided_keys(), ["h"]);
}

#[test]
fn a_volume_wakes_the_one_claim_that_asks_for_most_of_it() {
    let mut hand = waiting();
    hand.add("pv v 6Gi Pending");
    assert_eq!(hand.decided_keys(), ["f", "v"]);
    let mut hand = waiting();
    hand.add("pv v 10Gi Pending");
    assert_eq!(hand.decided_keys(), ["e", "v"]);
}

#[test]
fn a_volume_that_a_claim_names_wakes_that_claim() {
    let mut hand = waiting();
    hand.add("pv v7 1Gi Pending");
    assert_eq!(hand.decided_keys(), ["g"], "and the volume waits for what the claim writes on it");
}

#[test]
fn a_pod_wakes_exactly_the_claims_it_uses() {
    let mut hand = waiting();
    hand.add("pod p claim=d claim=w");
    assert_eq!(hand.decided_keys(), ["d"]);
    assert_eq!(hand.notices[0].message, "waiting for pod p to be scheduled");
    hand.add("pod p claim=d claim=w node=n");
    assert_eq!(hand.decided_keys(), ["d"]);
}

#[test]
fn what_changes_nothing_wakes_nobody() {
    let mut hand = waiting();
    hand.world.edit(&claim_key("a"), serde_json::json!({"metadata": {"labels": {"x": "y"}}}));
    hand.watch();
    hand.add("pod q claim=unheard-of");
    hand.add("node n");
    assert_eq!(hand.decided_keys(), Vec::<String>::new());
}

#[test]
fn a_claim_that_lets_go_of_a_volume_frees_it_for_others() {
    let mut hand = Hand::start(
        "pvc named#1 1Gi Pending vol=v
         pvc other#2 1Gi Pending",
    );
    hand.answer_all();
    // The volume can serve the claim that names it, and is kept for it though that one's writes are refused.
    hand.add("pv v 1Gi Available");
    assert_eq!(hand.only().1.target(), ObjectKey::volume("v"));
    hand.refuse(NO());
    assert!(hand.open.is_empty());
    hand.world.remove(&claim_key("named"));
    hand.watch();
    hand.answer_all();
    assert!(hand.rendered().contains("->other#2"), "{}", hand.rendered());
}

// === Events ===

#[test]
fn an_event_that_says_nothing_new_is_not_repeated() {
    let mut hand = Hand::start("pvc c#u 1Gi Pending class=");
    assert_eq!(hand.notices.len(), 1);
    for _ in 0..100 {
        hand.tick(Duration::from_secs(15));
    }
    hand.world.edit(&claim_key("c"), serde_json::json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    hand.watch();
    assert_eq!(hand.notices.len(), 1);
    assert!(hand.engine.stats().resyncs > 50 && hand.engine.stats().resync_finds == 0);
}

#[test]
fn an_event_is_told_again_when_something_else_was_said_between() {
    let mut hand = Hand::start("sc late example.com/x wffc\npvc c#u 1Gi Pending class=late");
    hand.add("pod p claim=c");
    hand.world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "p".into() });
    hand.watch();
    let reasons: Vec<&str> = hand.notices.iter().map(|notice| notice.reason.as_str()).collect();
    assert_eq!(reasons, ["WaitForFirstConsumer", "WaitForPodScheduled", "WaitForFirstConsumer"]);
}

// === Measurements, bad input ===

#[test]
fn provisioning_is_measured_from_asking_to_being_bound() {
    let mut hand = Hand::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    hand.answer_all();
    assert!(hand.engine.is_timing(Timed::Provision, &claim_key("c")));
    hand.now += Duration::from_secs(7);
    hand.add("pv pvc-u 1Gi Pending ->c#u by=example.com/ext class=ext policy=Delete source=csi:example.com/ext");
    hand.answer_all();
    assert!(!hand.engine.is_timing(Timed::Provision, &claim_key("c")));
    assert_eq!(hand.world.effects, 1 + 3, "asking, then three writes for a volume that came with its claim");

    let mut hand = Hand::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    hand.answer_all();
    hand.world.remove(&claim_key("c"));
    hand.watch();
    assert!(!hand.engine.is_timing(Timed::Provision, &claim_key("c")), "the claim is gone");
}

#[test]
fn a_malformed_object_stops_nobody_else() {
    let mut hand = Hand::start(PAIR);
    hand.world.edit(&ObjectKey::volume("v"), serde_json::json!({"status": {"phase": "Melted"}}));
    hand.watch();
    hand.answer_all();
    let melted = hand.decided.iter().rev().find(|decided| decided.key.kind == Kind::Volume).expect("decided about");
    assert_eq!(melted.rule.name, "volume.malformed");
    assert_eq!(melted.note.as_deref(), Some("status.phase: \"Melted\": an unknown value"));
    hand.add("pv w 1Gi Available");
    hand.add("pvc d#w 1Gi Pending");
    hand.answer_all();
    assert!(hand.rendered().contains("pv w 1Gi Bound"), "{}", hand.rendered());
}

#[test]
fn the_same_input_gives_the_same_output() {
    let trace = || {
        let mut hand = Hand::start(&(many(12) + WAITING));
        hand.answer_all();
        hand.add("pv late 20Gi Pending");
        hand.answer_all();
        (hand.decided, hand.notices, hand.world.history)
    };
    let (first, second) = (trace(), trace());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
    assert_eq!(first.2, second.2);
}

#[test]
fn objects_of_other_kinds_are_not_the_binders() {
    let mut hand = Hand::start("");
    hand.tell(Input::Watched(
        Object::from_json(Kind::AttributesClass, br#"{"metadata":{"name":"gold"}}"#).expect("named"),
    ));
    assert!(hand.decided.is_empty());
}
