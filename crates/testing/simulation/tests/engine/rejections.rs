//! Rejected requests are reported with everything that an operator needs, and remembered while they
//! matter.

use std::time::Duration;

use bindery_engine::{Answer, Config, Input, Rejection, RequestError};
use bindery_lifecycle::{ClaimProtection, Ephemeral};
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::Request;

use crate::harness::{Harness, PAIR, claim_key};

fn forbidden() -> RequestError {
    RequestError::Error(403, "persistentvolumes is forbidden".into())
}

/// The only rejection since the last call.
fn reported(harness: &mut Harness) -> Rejection {
    assert_eq!(harness.rejections.len(), 1, "{:?}", harness.rejections);
    harness.rejections.remove(0)
}

#[test]
fn rejected_write_is_reported_with_step_status_and_next_retry() {
    let mut harness = Harness::start(PAIR);
    for (failures, millis) in [(1, 5), (2, 10), (3, 20)] {
        harness.reject(forbidden());
        let rejection = reported(&mut harness);
        assert_eq!(
            rejection,
            Rejection {
                set: "persistentvolume-binder",
                key: claim_key("c"),
                target: ObjectKey::volume("v"),
                step: "bind.1-reserve-volume",
                error: forbidden(),
                failures,
                at: bindery_engine::Moment(harness.now),
                retry_in: Some(Duration::from_millis(millis)),
            }
        );
        assert_eq!(harness.engine.rejection_of(&claim_key("c")), Some(&rejection));
        assert_eq!(harness.engine.rejections().collect::<Vec<_>>(), [&rejection]);
        harness.tick(Duration::from_millis(millis));
    }
    assert_eq!(harness.engine.stats().rejections[&(403, "bind.1-reserve-volume")], 3);
}

#[test]
fn rejection_is_forgotten_once_a_write_succeeds() {
    let mut harness = Harness::start(PAIR);
    harness.reject(forbidden());
    harness.tick(Duration::from_millis(5));
    assert!(harness.engine.rejection_of(&claim_key("c")).is_some(), "the retry may be rejected, too");
    harness.answer_only();
    assert_eq!(harness.engine.rejection_of(&claim_key("c")), None);
    harness.answer_all();
    assert_eq!(harness.engine.rejections().count(), 0);
}

#[test]
fn conflict_is_reported_and_stays_until_the_write_succeeds() {
    let mut harness = Harness::start(PAIR);
    harness.reject(RequestError::Conflict);
    let rejection = reported(&mut harness);
    assert_eq!((rejection.error.status(), rejection.retry_in), (409, None), "the volume is read at once");
    harness.answer_only();
    let rejection = harness.engine.rejection_of(&claim_key("c")).expect("the read does not settle it");
    assert_eq!(rejection.retry_in, Some(Duration::from_millis(5)), "nothing has changed, so it backs off");
}

#[test]
fn rejected_read_is_reported() {
    let mut harness = Harness::start("pv v 1Gi Bound ->c#u bbc");
    assert_eq!(harness.step(), "read");
    harness.reject(RequestError::Lost);
    let rejection = reported(&mut harness);
    assert_eq!((rejection.target, rejection.error.status()), (claim_key("c"), 0));
    assert_eq!(rejection.retry_in, Some(Duration::from_millis(5)));
    harness.tick(Duration::from_millis(5));
    harness.answer_only();
    assert_eq!(harness.engine.rejections().count(), 0, "the same step has succeeded");
}

#[test]
fn rejected_creation_is_reported_with_the_retry_that_the_rules_choose() {
    let mut harness = Harness::hosting(Box::new(Ephemeral), "pod p eph=x", Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness.reject(RequestError::Error(403, "exceeded quota".into()));
    let rejection = reported(&mut harness);
    assert_eq!((rejection.target, rejection.error.status()), (claim_key("p-x"), 403));
    assert!(rejection.retry_in.is_some(), "the rules decide about the outcome in the same step");
}

#[test]
fn rejected_list_is_reported_once_for_all_claims_that_share_it() {
    let state = "pvc a#u-a 1Gi Pending protected deleting
                 pvc b#u-b 1Gi Pending protected deleting";
    let mut harness = Harness::hosting(Box::new(ClaimProtection { reports_unused: false }), state, Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness.reject(forbidden());
    let rejection = reported(&mut harness);
    let pods = ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: Name::default() };
    assert_eq!((&rejection.key, &rejection.target), (&claim_key("a"), &pods));
    assert_eq!(harness.engine.stats().rejections.values().sum::<u64>(), 1, "one request was rejected");
    let mut remembered: Vec<_> = harness.engine.rejections().map(|rejection| rejection.key.name.as_str()).collect();
    remembered.sort_unstable();
    assert_eq!(remembered, ["a", "b"], "both claims wait because of it");
}

#[test]
fn rejected_operation_is_reported() {
    let mut harness = Harness::start("pv v 1Gi Released ->c#u policy=Recycle source=hostPath:/tmp/v");
    while !matches!(harness.only().1, Request::RunOperation(_)) {
        harness.answer_only();
    }
    harness.reject(RequestError::Error(500, "it failed".into()));
    let rejection = reported(&mut harness);
    assert_eq!((rejection.target, rejection.error.status()), (ObjectKey::volume("v"), 500));
}

/// One entry for each key that is not idle: keys that become idle leave none behind.
#[test]
fn rejections_of_deleted_objects_are_not_kept() {
    let mut harness = Harness::start(PAIR);
    harness.reject(forbidden());
    harness.cluster.remove(&claim_key("c"));
    harness.watch();
    assert_eq!(harness.engine.rejections().count(), 0);
    let mut harness = Harness::start(PAIR);
    harness.reject(forbidden());
    harness.handle(Input::Leader(false));
    assert_eq!(harness.engine.rejections().count(), 0);
    harness.handle(Input::Answered(bindery_engine::RequestId(99), Answer::Rejected(forbidden())));
    assert_eq!(harness.rejections.len(), 1, "an answer to an unknown request is ignored");
}
