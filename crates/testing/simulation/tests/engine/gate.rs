//! The admission gate: what an overloaded API server asks for holds for all requests.

use std::time::Duration;

use bindery_engine::{Answer, Config, Input, RequestError, RequestId};
use bindery_lifecycle::{ClaimProtection, Ephemeral};
use bindery_model::ObjectKey;
use bindery_rules_api::{Request, RuleSet};
use bindery_scheduler::Scheduler;

use crate::harness::{Harness, PAIR, REJECTED, many};

const SECOND: Duration = Duration::from_secs(1);

fn retry_after(seconds: u64) -> RequestError {
    RequestError::RetryAfter(Duration::from_secs(seconds), "too many requests".into())
}

fn reject(harness: &mut Harness, id: RequestId, error: RequestError) {
    harness.open.remove(&id);
    harness.handle(Input::Answered(id, Answer::Rejected(error)));
}

fn first(harness: &Harness) -> RequestId {
    *harness.open.keys().next().expect("an open request")
}

fn hosting(rules: Box<dyn RuleSet + Send>, state: &str) -> Harness {
    let mut harness = Harness::hosting(rules, state, Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness
}

/// Answers all open requests, without new ones.
fn drain(harness: &mut Harness) {
    let open: Vec<RequestId> = harness.open.keys().copied().collect();
    for id in open {
        harness.answer(id);
        harness.watch();
    }
}

#[test]
fn retry_after_pauses_all_requests() {
    let mut harness = Harness::start(&many(20));
    let rejected = first(&harness);
    reject(&mut harness, rejected, retry_after(3));
    drain(&mut harness);
    assert!(harness.open.is_empty(), "nothing is sent during the pause: {:?}", harness.open);
    harness.add("pv w 1Gi Pending");
    harness.tick(Duration::from_millis(2999));
    assert!(harness.open.is_empty(), "{:?}", harness.open);
    harness.tick(Duration::from_millis(1));
    assert_eq!(harness.open.len(), 21, "all continue");
    harness.answer_all();
    assert_eq!(harness.rendered().matches(" Bound ").count(), 40);
}

#[test]
fn tick_is_announced_for_the_end_of_the_pause() {
    let mut harness = Harness::start(&many(2));
    let rejected = first(&harness);
    reject(&mut harness, rejected, retry_after(3));
    drain(&mut harness);
    assert_eq!(harness.tick_at, Some(3 * SECOND));
}

#[test]
fn read_after_a_conflict_waits_for_the_end_of_the_pause_and_keeps_the_object_locked() {
    let mut harness = Harness::start(&many(2));
    let (rejected, in_conflict) = (first(&harness), *harness.open.keys().nth(1).expect("two writes"));
    reject(&mut harness, rejected, retry_after(3));
    reject(&mut harness, in_conflict, RequestError::Conflict);
    assert!(harness.open.is_empty(), "{:?}", harness.open);
    harness.tick(3 * SECOND);
    assert!(harness.open.values().any(|request| matches!(request, Request::Read(_))), "{:?}", harness.open);
    harness.answer_all();
    harness.tick(SECOND);
    harness.answer_all();
    assert_eq!(harness.rendered().matches(" Bound ").count(), 4);
}

/// Each kind of request, alone: it is sent again after the time that the server asked for, neither
/// earlier nor later.
#[test]
fn retry_after_is_honored_for_every_kind_of_request() {
    let deleted = "pvc a#u-a 1Gi Pending protected deleting";
    let released = "pv v 1Gi Released ->c#u policy=Recycle source=hostPath:/tmp/v";
    let cases: [(&str, Harness); 6] = [
        ("Write", Harness::start(PAIR)),
        ("Read", Harness::start("pv v 1Gi Bound ->c#u bbc")),
        ("List", hosting(Box::new(ClaimProtection { reports_unused: false }), deleted)),
        ("Create", hosting(Box::new(Ephemeral), "pod p eph=x")),
        ("Bind", hosting(Box::new(Scheduler::default()), "node n\npod p")),
        ("RunOperation", Harness::start(released)),
    ];
    for (kind, mut harness) in cases {
        while !format!("{:?}", harness.only().1).starts_with(kind) {
            harness.answer_only();
        }
        harness.reject(retry_after(3));
        assert_eq!(harness.rejections.last().and_then(|rejection| rejection.retry_in), Some(3 * SECOND), "{kind}");
        harness.tick(Duration::from_millis(2999));
        assert!(harness.open.is_empty(), "{kind} is sent during the pause: {:?}", harness.open);
        harness.tick(Duration::from_millis(1));
        assert!(!harness.open.is_empty(), "{kind} is not sent after the pause");
    }
}

#[test]
fn overload_halves_the_requests_in_flight_once_for_all_that_were_sent_before() {
    let mut harness = Harness::with(&many(99), Config { requests_max: 64, ..Config::default() });
    assert_eq!(harness.open.len(), 64);
    let open: Vec<RequestId> = harness.open.keys().copied().collect();
    for id in open {
        reject(&mut harness, id, retry_after(1));
    }
    assert_eq!(harness.engine.request_window(), 32);
    harness.tick(SECOND);
    assert_eq!(harness.open.len(), 32, "the second round is half as large");
    let id = first(&harness);
    reject(&mut harness, id, RequestError::Lost);
    assert_eq!(harness.engine.request_window(), 16, "no response counts as overload, too");
}

#[test]
fn requests_that_hang_do_not_stop_all_others() {
    let mut harness = Harness::with(&many(99), Config { requests_max: 64, ..Config::default() });
    for _ in 0..50 {
        let newest = *harness.open.keys().next_back().expect("an open request");
        reject(&mut harness, newest, RequestError::Unknown(0, "timeout".into()));
        harness.tick(SECOND);
    }
    assert_eq!(harness.engine.request_window(), 4, "a sixteenth");
}

#[test]
fn responses_restore_the_window_and_errors_of_one_object_do_not_shrink_it() {
    let mut harness = Harness::with(&many(99), Config { requests_max: 64, ..Config::default() });
    let id = first(&harness);
    reject(&mut harness, id, retry_after(1));
    assert_eq!(harness.engine.request_window(), 32);
    harness.tick(SECOND);
    harness.answer_all();
    assert_eq!(harness.engine.request_window(), 64);
    let mut harness = Harness::start(PAIR);
    for error in [REJECTED(), RequestError::Error(403, "forbidden".into()), RequestError::Conflict] {
        let id = first(&harness);
        reject(&mut harness, id, error);
        harness.tick(60 * SECOND);
    }
    assert_eq!(harness.engine.request_window(), Config::default().requests_max);
}

#[test]
fn everything_is_bound_with_the_smallest_limits() {
    let config = Config { requests_max: 1, operations_max: 1, ..Config::default() };
    let mut harness = Harness::with(&many(5), config);
    let mut requests = 0;
    while !harness.open.is_empty() || harness.engine.pending() > 0 {
        requests += 1;
        assert!(harness.open.len() <= 1 && requests < 500, "{:?}", harness.open);
        match harness.open.keys().next().copied() {
            Some(id) if requests % 5 == 0 => reject(&mut harness, id, retry_after(1)),
            Some(id) => harness.answer(id),
            None => harness.tick(SECOND),
        }
        harness.watch();
    }
    assert_eq!(harness.rendered().matches(" Bound ").count(), 10);
}

/// Instances with different seeds come back at different times, none of them too early.
#[test]
fn jitter_spreads_the_end_of_the_pause() {
    let ends: Vec<Duration> = (0..20)
        .map(|seed| {
            let mut harness = Harness::with(PAIR, Config { jitter_seed: Some(seed), ..Config::default() });
            harness.reject(retry_after(4));
            harness.tick_at.expect("the end of the pause")
        })
        .collect();
    assert!(ends.iter().all(|end| (4 * SECOND..=5 * SECOND).contains(end)), "{ends:?}");
    let mut distinct = ends.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), ends.len(), "{ends:?}");
}

/// A volume whose reservation was rejected is not offered to each claim that is backed off.
#[test]
fn rejected_writes_of_many_claims_cost_few_decisions_each() {
    let mut harness = Harness::start(&many(100));
    assert_eq!(harness.open.len(), 100);
    let open: Vec<RequestId> = harness.open.keys().copied().collect();
    harness.decided.clear();
    for id in open {
        reject(&mut harness, id, REJECTED());
    }
    assert!(harness.open.is_empty(), "all claims are backed off");
    assert!(harness.decided.len() <= 200, "{} decisions about 100 rejected writes", harness.decided.len());
    harness.tick(SECOND);
    harness.answer_all();
    assert_eq!(harness.rendered().matches(" Bound ").count(), 200);
}

/// The same for pods that wait behind pods which are backed off.
#[test]
fn rejected_bindings_of_many_pods_cost_few_decisions_each() {
    let pods: String = (0..100).map(|n| format!("pod p{n:02}\n")).collect();
    let mut harness = hosting(Box::new(Scheduler::default()), &format!("node n\n{pods}"));
    let mut rejected = 0;
    while !harness.open.is_empty() {
        let id = first(&harness);
        reject(&mut harness, id, REJECTED());
        rejected += 1;
        assert!(rejected <= 100, "a rejection does not end the back-off of other pods");
    }
    harness.decided.clear();
    let mut again = 0;
    harness.tick(SECOND);
    while !harness.open.is_empty() {
        let id = first(&harness);
        reject(&mut harness, id, REJECTED());
        again += 1;
    }
    assert_eq!((rejected, again), (100, 100));
    assert!(harness.decided.len() <= 400, "{} decisions about 100 rejected bindings", harness.decided.len());
}

/// A volume is still offered to a claim that is idle, past all that are backed off.
#[test]
fn volume_is_handed_to_an_idle_claim_past_those_that_are_backed_off() {
    let mut harness = Harness::start(&many(3));
    harness.add("pvc idle#w 1Gi Pending");
    let open: Vec<RequestId> = harness.open.keys().copied().collect();
    for id in open {
        reject(&mut harness, id, REJECTED());
    }
    let writes: Vec<ObjectKey> = harness.open.values().map(Request::target).collect();
    assert_eq!(writes, [ObjectKey::volume("v00")], "the idle claim takes the first volume that becomes free");
}
