//! A claim that waits for its provisioner: what was asked, what was answered, when it is asked again.

use bindery_cache::Cache;
use bindery_explain::{Provisioning, provisioning};
use bindery_model::ClaimKey;
use bindery_simulation::notation;
use bindery_simulation::run::cache_of;
use serde_json::{Value, json};

fn of(lines: &str, intent: Option<&str>, events: &[Value]) -> Option<Provisioning> {
    let mut cluster = notation::parse(lines);
    let key = ClaimKey::new("default", "c");
    if let Some(intent) = intent {
        let patch = json!({"metadata": {"annotations": {"bindery.dev/provisioning": intent}}});
        cluster.edit(&key.clone().into(), patch);
    }
    let known: Cache = cache_of(&cluster, &[]);
    let claim = known.claim(&key).expect("it is there");
    provisioning(&known, claim, events)
}

fn event(uid: &str, reason: &str, at: &str, next: Option<&str>) -> Value {
    json!({
        "involvedObject": {"uid": uid}, "reason": reason, "message": format!("{reason}!"), "count": 3,
        "lastTimestamp": at, "metadata": {"annotations": next.map(|next| json!({"bindery.dev/next-try": next}))},
    })
}

const WAITS: &str = "pvc c#u1 5Gi Pending class=gold sp=csi.example.com node=n1";

#[test]
fn the_last_answer_counts_and_says_when_it_is_tried_again() {
    let events = [
        event("u1", "ProvisioningFailed", "2026-01-01T00:00:05Z", Some("2026-01-01T00:00:09Z")),
        event("u1", "ProvisioningFailed", "2026-01-01T00:00:02Z", Some("2026-01-01T00:00:04Z")),
        event("u1", "Provisioning", "2026-01-01T00:00:05Z", None),
        event("u9", "ProvisioningFailed", "2026-01-01T00:00:08Z", None),
        event("u1", "WaitForFirstConsumer", "2026-01-01T00:00:08Z", None),
    ];
    let found = of(WAITS, None, &events).expect("it waits");
    assert_eq!((found.provisioner.as_str(), found.is_outcome_unknown), ("csi.example.com", false));
    assert_eq!(found.asked, "5Gi of class gold, for node n1, which does not exist");
    let said = found.last.expect("it answered");
    assert_eq!(
        (said.message.as_str(), said.at.as_str(), said.count),
        ("ProvisioningFailed!", "2026-01-01T00:00:05Z", 3)
    );
    assert_eq!(found.next_attempt.as_deref(), Some("2026-01-01T00:00:09Z"));
}

#[test]
fn what_is_uncertain_says_what_was_asked_before() {
    let intent =
        r#"{"provisioner":"csi.example.com","node":"n2","topology":{"requisite":[],"preferred":[[["zone","a"]]]}}"#;
    let found = of(WAITS, Some(intent), &[]).expect("it waits");
    assert!(found.is_outcome_unknown && found.last.is_none() && found.next_attempt.is_none());
    assert_eq!(found.asked, "5Gi of class gold, for node n2, which does not exist, reachable from zone=a");
}

#[test]
fn who_has_a_volume_or_asks_nobody_does_not_wait() {
    assert_eq!(of("pvc c#u1 5Gi Bound vol=v class=gold sp=csi.example.com", None, &[]), None);
    assert_eq!(of("pvc c#u1 5Gi Pending class=gold", None, &[]), None);
}
