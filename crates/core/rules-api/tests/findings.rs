//! Findings: what lasts, what passes, and what counts when there are several.

use bindery_model::{Claim, ClaimKey, Object, ObjectKey, Volume};
use bindery_rules_api::{After, Failure, Findings, Task, Yield};

fn volume_at(version: u64) -> Object {
    let json = format!(r#"{{"metadata": {{"name": "v", "resourceVersion": "{version}"}}}}"#);
    Object::Volume(Volume::from_json(json.as_bytes()).expect("it has a name").into())
}

#[test]
fn no_read_is_not_a_read_that_found_nothing() {
    let mut findings = Findings::default();
    let name = "v".into();
    assert_eq!(findings.volume(&name), None);
    findings.note_read(ObjectKey::volume("v"), None);
    assert_eq!(findings.volume(&name), Some(None));
    assert_eq!(findings.claim(&ClaimKey::new("", "v")), None, "a volume's read tells nothing of a claim");
}

#[test]
fn the_last_read_counts() {
    let mut findings = Findings::default();
    findings.note_read(ObjectKey::volume("v"), None);
    findings.note_read(ObjectKey::volume("v"), Some(volume_at(1)));
    findings.note_read(ObjectKey::volume("v"), Some(volume_at(2)));
    let found = findings.volume(&"v".into()).flatten().expect("it was found");
    assert_eq!(found.meta.version, 2);
    findings.note_read(ObjectKey::volume("v"), None);
    assert_eq!(findings.volume(&"v".into()), Some(None));
}

#[test]
fn reads_and_offers_pass_and_outcomes_last() {
    let claim = Claim::from_json(br#"{"metadata": {"name": "c", "namespace": "ns"}}"#).expect("it has a name");
    let key = claim.key();
    let mut findings = Findings::default();
    assert!(findings.is_empty());
    findings.note_read(key.clone().into(), Some(Object::Claim(claim.into())));
    findings.note_offer(key.clone().into());
    findings.note_outcome(Task::Recycle, Ok(Yield::default()));
    findings.note_pause();
    assert!(findings.was_offered_to(&key.clone().into()) && findings.claim(&key).is_some());
    findings.forget_passing();
    assert!(!findings.was_offered_to(&key.clone().into()) && findings.claim(&key).is_none());
    assert!(findings.is_done(Task::Recycle) && !findings.is_empty());
    assert_eq!(findings.pause_count(), 1);
}

#[test]
fn outcomes_are_counted_by_task() {
    let mut findings = Findings::default();
    findings.note_outcome(Task::SaveVolume, Err(Failure::new("first")));
    findings.note_outcome(Task::CleanUp, Err(Failure::new("another task")));
    findings.note_outcome(Task::SaveVolume, Err(Failure::new("second").with(After::InUse)));
    assert_eq!(findings.failure_count(Task::SaveVolume), 2);
    assert_eq!(findings.last_failure(Task::SaveVolume).map(|failure| failure.error.as_str()), Some("second"));
    assert!(findings.last_failure(Task::SaveVolume).is_some_and(|failure| failure.after == After::InUse));
    assert!(!findings.is_done(Task::SaveVolume));
    findings.note_outcome(Task::SaveVolume, Ok(Yield::of("volume".into())));
    assert!(findings.is_done(Task::SaveVolume) && !findings.is_done(Task::CleanUp));
    assert_eq!(findings.yielded(Task::SaveVolume).and_then(|yielded| yielded.as_str()), Some("volume"));
    assert_eq!(findings.yielded(Task::CleanUp), None);
    assert_eq!(findings.failure_count(Task::Provision), 0);
}
