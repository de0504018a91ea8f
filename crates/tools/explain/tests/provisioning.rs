//! Explanations of provisioning: the request, the last event, the next attempt.

use bindery_cache::Cache;
use bindery_explain::{Provisioning, provisioning};
use bindery_model::{ClaimKey, Kind};
use bindery_simulation::notation;
use bindery_simulation::run::cache_of;
use serde_json::{Value, json};

fn of(lines: &str, recorded: Option<Value>, events: &[Value]) -> Option<Provisioning> {
    let mut cluster = notation::parse(lines);
    let key = ClaimKey::new("default", "c");
    if let Some(request) = recorded {
        let claim = json!({"namespace": "default", "name": "c"});
        cluster.put(Kind::Record, json!({"metadata": {"name": "u1", "uid": "u1"}, "claim": claim, "request": request}));
    }
    let known: Cache = cache_of(&cluster, &[]);
    let claim = known.claim(&key).expect("the claim exists");
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
fn last_outcome_and_next_attempt_are_shown() {
    let events = [
        event("u1", "ProvisioningFailed", "2026-01-01T00:00:05Z", Some("2026-01-01T00:00:09Z")),
        event("u1", "ProvisioningFailed", "2026-01-01T00:00:02Z", Some("2026-01-01T00:00:04Z")),
        event("u1", "Provisioning", "2026-01-01T00:00:05Z", None),
        event("u9", "ProvisioningFailed", "2026-01-01T00:00:08Z", None),
        event("u1", "WaitForFirstConsumer", "2026-01-01T00:00:08Z", None),
    ];
    let found = of(WAITS, None, &events).expect("the claim waits");
    assert_eq!((found.provisioner.as_str(), found.is_outcome_unknown), ("csi.example.com", false));
    assert_eq!(found.request, "5Gi of class gold, for node n1, which does not exist");
    let event = found.last_event.expect("an event was published");
    assert_eq!(
        (event.message.as_str(), event.at.as_str(), event.count),
        ("ProvisioningFailed!", "2026-01-01T00:00:05Z", 3)
    );
    assert_eq!(found.next_attempt.as_deref(), Some("2026-01-01T00:00:09Z"));
}

#[test]
fn unknown_outcome_shows_the_recorded_parameters() {
    let recorded = json!({"node": "n2", "topology": {"requisite": [], "preferred": [[["zone", "a"]]]}});
    let found = of(WAITS, Some(recorded), &[]).expect("the claim waits");
    assert!(found.is_outcome_unknown && found.last_event.is_none() && found.next_attempt.is_none());
    assert_eq!(found.request, "5Gi of class gold, for node n2, which does not exist, reachable from zone=a");
}

#[test]
fn claims_with_a_volume_or_without_a_provisioner_do_not_wait() {
    assert_eq!(of("pvc c#u1 5Gi Bound vol=v class=gold sp=csi.example.com", None, &[]), None);
    assert_eq!(of("pvc c#u1 5Gi Pending class=gold", None, &[]), None);
}
