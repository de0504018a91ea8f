//! ephemeral_test.go, TestVolumeIsForPod: whether a claim was created for a pod.

use bindery_model::{Claim, Kind, Object, Pod};
use bindery_simulation::notation;

/// Parses the lines of a pod and a claim.
fn pair(lines: &str) -> (Pod, Claim) {
    let cluster = notation::parse(lines);
    let one = |kind| cluster.list(kind).1.into_iter().next().expect("there is one");
    match (one(Kind::Pod), one(Kind::Claim)) {
        (Object::Pod(pod), Object::Claim(claim)) => (pod.as_ref().clone(), claim.as_ref().clone()),
        (pod, claim) => panic!("no pod and claim: {pod:?}, {claim:?}"),
    }
}

#[test]
fn claim_belongs_to_the_pod_with_its_namespace_and_controller_uid() {
    let cases = [
        ("owned", "pod kube-system/owner#uid1\n pvc kube-system/claim#uid2 1Gi Pending owner=uid1", true),
        ("other-pod", "pod kube-system/other#uid9\n pvc kube-system/claim#uid2 1Gi Pending owner=uid1", false),
        ("no-owner", "pod kube-system/owner#uid1\n pvc kube-system/claim#uid2 1Gi Pending", false),
        ("different-namespace", "pod kube-system/owner#uid1\n pvc users/claim#uid2 1Gi Pending owner=uid1", false),
        (
            "ours: not the controller",
            "pod kube-system/owner#uid1\n pvc kube-system/claim#uid2 1Gi Pending owner=?uid1",
            false,
        ),
    ];
    for (name, lines, is_owner) in cases {
        let (pod, claim) = pair(lines);
        assert_eq!(pod.owns(&claim), is_owner, "{name}");
    }
}
