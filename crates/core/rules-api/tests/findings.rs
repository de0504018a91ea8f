//! LiveReads: what lasts, what passes, and what counts when there are several.

use bindery_model::{Claim, ClaimKey, Object, ObjectKey, Volume};
use bindery_rules_api::{Failure, FailureEffect, LiveReads, OperationOutput, Task};

fn volume_at(version: u64) -> Object {
    let json = format!(r#"{{"metadata": {{"name": "v", "resourceVersion": "{version}"}}}}"#);
    Object::Volume(Volume::from_json(json.as_bytes()).expect("it has a name").into())
}

#[test]
fn no_read_is_not_a_read_that_found_nothing() {
    let mut live_reads = LiveReads::default();
    let name = "v".into();
    assert_eq!(live_reads.volume(&name), None);
    live_reads.note_read(ObjectKey::volume("v"), None);
    assert_eq!(live_reads.volume(&name), Some(None));
    assert_eq!(live_reads.claim(&ClaimKey::new("", "v")), None, "a volume's read tells nothing of a claim");
}

#[test]
fn the_last_read_counts() {
    let mut live_reads = LiveReads::default();
    live_reads.note_read(ObjectKey::volume("v"), None);
    live_reads.note_read(ObjectKey::volume("v"), Some(volume_at(1)));
    live_reads.note_read(ObjectKey::volume("v"), Some(volume_at(2)));
    let found = live_reads.volume(&"v".into()).flatten().expect("it was found");
    assert_eq!(found.meta.version, 2);
    live_reads.note_read(ObjectKey::volume("v"), None);
    assert_eq!(live_reads.volume(&"v".into()), Some(None));
}

#[test]
fn reads_and_offers_pass_and_outcomes_last() {
    let claim = Claim::from_json(br#"{"metadata": {"name": "c", "namespace": "ns"}}"#).expect("it has a name");
    let key = claim.key();
    let mut live_reads = LiveReads::default();
    assert!(live_reads.is_empty());
    live_reads.note_read(key.clone().into(), Some(Object::Claim(claim.into())));
    live_reads.note_hand_off(key.clone().into());
    live_reads.note_outcome(Task::Recycle, Ok(OperationOutput::default()));
    live_reads.note_pause();
    assert!(live_reads.was_handed_to(&key.clone().into()) && live_reads.claim(&key).is_some());
    live_reads.forget_passing();
    assert!(!live_reads.was_handed_to(&key.clone().into()) && live_reads.claim(&key).is_none());
    assert!(live_reads.is_done(Task::Recycle) && !live_reads.is_empty());
    assert_eq!(live_reads.pause_count(), 1);
}

#[test]
fn outcomes_are_counted_by_task() {
    let mut live_reads = LiveReads::default();
    live_reads.note_outcome(Task::SaveVolume, Err(Failure::new("first")));
    live_reads.note_outcome(Task::CleanUp, Err(Failure::new("another task")));
    live_reads.note_outcome(Task::SaveVolume, Err(Failure::new("second").with(FailureEffect::InUse)));
    assert_eq!(live_reads.failure_count(Task::SaveVolume), 2);
    assert_eq!(live_reads.last_failure(Task::SaveVolume).map(|failure| failure.error.as_str()), Some("second"));
    assert!(live_reads.last_failure(Task::SaveVolume).is_some_and(|failure| failure.after == FailureEffect::InUse));
    assert!(!live_reads.is_done(Task::SaveVolume));
    live_reads.note_outcome(Task::SaveVolume, Ok(OperationOutput::of("volume".into())));
    assert!(live_reads.is_done(Task::SaveVolume) && !live_reads.is_done(Task::CleanUp));
    assert_eq!(live_reads.yielded(Task::SaveVolume).and_then(|yielded| yielded.as_str()), Some("volume"));
    assert_eq!(live_reads.yielded(Task::CleanUp), None);
    assert_eq!(live_reads.failure_count(Task::Provision), 0);
}
