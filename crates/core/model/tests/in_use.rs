//! When a pod holds a claim back from being deleted, and when a claim is in use because of it.

use bindery_model::{Claim, Pod};
use serde_json::{Value, json};

fn claim(name: &str, owner: Option<&str>) -> Claim {
    let owners: Vec<Value> = owner.map(|uid| json!({"uid": uid, "controller": true})).into_iter().collect();
    let claim = json!({"metadata": {"name": name, "namespace": "ns", "uid": "c", "ownerReferences": owners}});
    Claim::from_json(claim.to_string().as_bytes()).expect("a claim")
}

/// A pod with a claim that it names, `data`, and one that stands for its ephemeral volume, `p-scratch`.
fn pod(change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"},
        "spec": {"nodeName": "n", "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {"name": "nameless", "persistentVolumeClaim": {}},
        ]},
    });
    change(&mut pod);
    Pod::from_json(pod.to_string().as_bytes()).expect("a pod")
}

fn deleted(pod: &mut Value, grace: Value) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    pod["metadata"]["deletionGracePeriodSeconds"] = grace;
}

#[test]
fn a_pod_on_a_node_holds_its_claims_whatever_it_has_come_to() {
    let (data, scratch) = (claim("data", None), claim("p-scratch", Some("pod-uid")));
    let both = |pod: &Pod| [pod.holds(&data), pod.holds(&scratch)];
    assert_eq!(both(&pod(|_| ())), [true, true]);
    assert_eq!(both(&pod(|pod| pod["status"]["phase"] = "Succeeded".into())), [true, true], "it has ended");
    assert_eq!(both(&pod(|pod| pod["spec"]["nodeName"] = Value::Null)), [false, false], "it has no node");
    assert_eq!(both(&pod(|pod| pod["metadata"]["namespace"] = "other".into())), [false, false], "it is elsewhere");
    assert_eq!(both(&pod(|pod| deleted(pod, json!(30)))), [true, true], "its node has yet to let go of it");
    assert_eq!(both(&pod(|pod| deleted(pod, json!(0)))), [true, false], "its node has let go of it");
}

#[test]
fn only_what_was_made_for_a_pod_is_its_ephemeral_claim() {
    let mine = claim("p-scratch", Some("pod-uid"));
    let pod = pod(|_| ());
    assert!(pod.owns(&mine) && pod.uses(&mine) && pod.holds(&mine));
    for owner in [None, Some("another")] {
        let foreign = claim("p-scratch", owner);
        assert!(!pod.owns(&foreign) && !pod.uses(&foreign) && !pod.holds(&foreign), "{owner:?}");
    }
}

#[test]
fn a_claim_is_in_use_while_a_pod_that_names_it_has_not_ended() {
    let data = claim("data", None);
    assert!(pod(|pod| pod["spec"]["nodeName"] = Value::Null).uses(&data), "it needs no node for that");
    assert!(!pod(|pod| pod["status"]["phase"] = "Failed".into()).uses(&data));
    assert!(!pod(|pod| deleted(pod, json!(30))).uses(&data), "deleted, and nothing of it runs");
    assert!(!pod(|_| ()).uses(&claim("other", None)));
}

#[test]
fn the_template_is_kept_as_it_was_written() {
    let pod = pod(|_| ());
    let ephemeral: Vec<_> = pod.ephemeral().map(|(at, volume)| (at, volume.name.as_str())).collect();
    assert_eq!(ephemeral, [(1, "scratch")]);
    let template = pod.volumes[1].template.as_deref().expect("a template");
    let template: Value = serde_json::from_str(template).expect("JSON");
    assert_eq!(template, json!({"spec": {"accessModes": ["ReadWriteOnce"]}}));
    assert_eq!(pod.volumes.len(), 2, "a volume that names no claim is none");
}
