//! What LiveReads keeps, what it drops, and which of several entries counts.

use bindery_model::{Claim, ClaimKey, Object, ObjectKey, Volume};
use bindery_rules_api::{Failure, FailureEffect, LiveReads, OperationOutput, Task};

fn volume_at(version: u64) -> Object {
    let json = format!(r#"{{"metadata": {{"name": "v", "resourceVersion": "{version}"}}}}"#);
    Object::Volume(Volume::from_json(json.as_bytes()).expect("a valid object").into())
}

#[test]
fn missing_read_differs_from_not_found() {
    let mut live_reads = LiveReads::default();
    let name = "v".into();
    assert_eq!(live_reads.volume(&name), None);
    live_reads.note_read(ObjectKey::volume("v"), None);
    assert_eq!(live_reads.volume(&name), Some(None));
    assert_eq!(live_reads.claim(&ClaimKey::new("", "v")), None, "a read of a volume is no read of a claim");
}

#[test]
fn last_read_counts() {
    let mut live_reads = LiveReads::default();
    live_reads.note_read(ObjectKey::volume("v"), None);
    live_reads.note_read(ObjectKey::volume("v"), Some(volume_at(1)));
    live_reads.note_read(ObjectKey::volume("v"), Some(volume_at(2)));
    let found = live_reads.volume(&"v".into()).flatten().expect("found");
    assert_eq!(found.meta.version, 2);
    live_reads.note_read(ObjectKey::volume("v"), None);
    assert_eq!(live_reads.volume(&"v".into()), Some(None));
}

#[test]
fn clear_reads_keeps_outcomes_and_pauses() {
    let claim = Claim::from_json(br#"{"metadata": {"name": "c", "namespace": "ns"}}"#).expect("a valid object");
    let key = claim.key();
    let mut live_reads = LiveReads::default();
    assert!(live_reads.is_empty());
    live_reads.note_read(key.clone().into(), Some(Object::Claim(claim.into())));
    live_reads.note_hand_off(key.clone().into());
    live_reads.note_outcome(Task::Recycle, Ok(OperationOutput::default()));
    live_reads.note_pause();
    assert!(live_reads.was_handed_to(&key.clone().into()) && live_reads.claim(&key).is_some());
    live_reads.clear_reads();
    assert!(!live_reads.was_handed_to(&key.clone().into()) && live_reads.claim(&key).is_none());
    assert!(live_reads.is_done(Task::Recycle) && !live_reads.is_empty());
    assert_eq!(live_reads.pause_count(), 1);
}

#[test]
fn outcomes_are_counted_by_task() {
    let mut live_reads = LiveReads::default();
    live_reads.note_outcome(Task::SaveVolume, Err(Failure::new("first")));
    live_reads.note_outcome(Task::DiscardStorage, Err(Failure::new("another task")));
    live_reads.note_outcome(Task::SaveVolume, Err(Failure::new("second").with(FailureEffect::InUse)));
    assert_eq!(live_reads.failure_count(Task::SaveVolume), 2);
    assert_eq!(live_reads.last_failure(Task::SaveVolume).map(|failure| failure.error.as_str()), Some("second"));
    assert!(live_reads.last_failure(Task::SaveVolume).is_some_and(|failure| failure.effect == FailureEffect::InUse));
    assert!(!live_reads.is_done(Task::SaveVolume));
    live_reads.note_outcome(Task::SaveVolume, Ok(OperationOutput::of("volume".into())));
    assert!(live_reads.is_done(Task::SaveVolume) && !live_reads.is_done(Task::DiscardStorage));
    assert_eq!(live_reads.output(Task::SaveVolume).and_then(|output| output.as_str()), Some("volume"));
    assert_eq!(live_reads.output(Task::DiscardStorage), None);
    assert_eq!(live_reads.failure_count(Task::CreateStorage), 0);
}
