//! When a pod protects a claim from deletion, and when it uses a claim.

use bindery_model::{Claim, Pod};
use serde_json::{Value, json};

fn claim(name: &str, owner: Option<&str>) -> Claim {
    let owners: Vec<Value> = owner.map(|uid| json!({"uid": uid, "controller": true})).into_iter().collect();
    let claim = json!({"metadata": {"name": name, "namespace": "ns", "uid": "c", "ownerReferences": owners}});
    Claim::from_json(claim.to_string().as_bytes()).expect("a claim")
}

/// A pod with a claim that it names, `data`, and the claim of an ephemeral volume, `p-scratch`.
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
fn pod_on_a_node_protects_its_claims_in_every_phase() {
    let (data, scratch) = (claim("data", None), claim("p-scratch", Some("pod-uid")));
    let both = |pod: &Pod| [pod.protects(&data), pod.protects(&scratch)];
    assert_eq!(both(&pod(|_| ())), [true, true]);
    assert_eq!(both(&pod(|pod| pod["status"]["phase"] = "Succeeded".into())), [true, true], "it is finished");
    assert_eq!(both(&pod(|pod| pod["spec"]["nodeName"] = Value::Null)), [false, false], "it has no node");
    assert_eq!(
        both(&pod(|pod| pod["metadata"]["namespace"] = "other".into())),
        [false, false],
        "it is in another namespace"
    );
    assert_eq!(both(&pod(|pod| deleted(pod, json!(30)))), [true, true], "it is terminating");
    assert_eq!(both(&pod(|pod| deleted(pod, json!(0)))), [true, false], "it is shut down");
}

#[test]
fn ephemeral_claim_must_be_owned_by_the_pod() {
    let mine = claim("p-scratch", Some("pod-uid"));
    let pod = pod(|_| ());
    assert!(pod.owns(&mine) && pod.uses(&mine) && pod.protects(&mine));
    for owner in [None, Some("another")] {
        let foreign = claim("p-scratch", owner);
        assert!(!pod.owns(&foreign) && !pod.uses(&foreign) && !pod.protects(&foreign), "{owner:?}");
    }
}

#[test]
fn claim_is_used_until_the_pod_has_terminated() {
    let data = claim("data", None);
    assert!(pod(|pod| pod["spec"]["nodeName"] = Value::Null).uses(&data), "even without a node");
    assert!(!pod(|pod| pod["status"]["phase"] = "Failed".into()).uses(&data));
    assert!(!pod(|pod| deleted(pod, json!(30))).uses(&data), "deleted, and no container is running");
    assert!(!pod(|_| ()).uses(&claim("other", None)));
}

#[test]
fn claim_template_is_kept_verbatim() {
    let pod = pod(|_| ());
    let ephemeral: Vec<_> = pod.ephemeral().map(|(at, volume)| (at, volume.name.as_str())).collect();
    assert_eq!(ephemeral, [(1, "scratch")]);
    let template = pod.volumes[1].template.as_deref().expect("a template");
    let template: Value = serde_json::from_str(template).expect("JSON");
    assert_eq!(template, json!({"spec": {"accessModes": ["ReadWriteOnce"]}}));
    assert_eq!(pod.volumes.len(), 2, "a volume without a claim name is skipped");
}
