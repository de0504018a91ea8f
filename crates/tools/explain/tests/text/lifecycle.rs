//! Explanations of ephemeral volumes, deletions and expansions.

use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_simulation::{SimulatedCluster, notation};
use serde_json::{Value, json};

use super::check_in;

fn pod(name: &str, node: &str, volumes: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
           "spec": {"nodeName": node, "volumes": volumes}})
}

fn cluster(lines: &str, pods: &[Value]) -> SimulatedCluster {
    let mut cluster = notation::parse(lines);
    for pod in pods {
        cluster.put(Kind::Pod, pod.clone());
    }
    cluster
}

fn claim(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

#[test]
fn pod_shows_the_state_of_its_claims() {
    let volumes = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]);
    let cluster = cluster(
        r"
            pv disk 1Gi Bound ->data#1
            pvc data#1 1Gi Bound vol=disk bc
            pvc p-scratch#2 1Gi Pending class=
            node n1
        ",
        &[pod("p", "", volumes)],
    );
    check_in(
        &cluster,
        "pod/p",
        "
            default/p is waiting for a node   [schedule.claims-rejected]
            A claim of the pod is missing, unbound, lost, being deleted or owned by another pod. The pod cannot run on any node until that changes.
              event      FailedScheduling: 0/1 nodes are available: PVC default/p-scratch was not created for pod default/p (pod is not owner). not found
              next       updates Pod default/p
              also       A claim with the name for this volume exists but is not owned by the pod. It is left unchanged, and the pod waits until the claim is deleted. (PVC default/p-scratch was not created for pod default/p (pod is not owner)) [ephemeral.conflict]
              event      FailedBinding: ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)
              data       volume data; Bound to disk
              p-scratch  ephemeral volume scratch; a claim of that name exists, but was not created for this pod
              p-cache    ephemeral volume cache; its claim does not exist yet
              node  claim data                claim p-scratch                                   claim p-cache                                     other checks
              n1    bound to disk, reachable  PVC default/p-scratch was not created for pod default/p (pod is not owner)  waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-cache\"  fits
            Smallest change: delete claim p-scratch, which was not created for this pod; and wait until the ephemeral volume controller creates claim p-cache. Then it can be scheduled on node n1.
        ",
    );
    assert_eq!(super::explain_in(&cluster, "pod/q"), "Pod default/q does not exist");
}

#[test]
fn terminating_claim_shows_the_pods_that_use_it() {
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pods = [pod("b", "node", volumes.clone()), pod("a", "node", volumes.clone()), pod("waiting", "", volumes)];
    let mut cluster = cluster("pv disk 1Gi Bound ->data#1\npvc data#1 1Gi Bound vol=disk bc", &pods);
    let held = json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"], "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    cluster.edit(&claim("data"), held);
    check_in(
        &cluster,
        "pvc/data",
        "
            default/data is Bound (Terminating)   [claim.bound.correct]
            The claim and its volume refer to each other. Any field of the bind that is still missing is written.
              requests  1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              also      The claim is Terminating, and pods that are scheduled to a node use it. It stays until these pods are deleted. (used by Pod default/a, Pod default/b) [protection.claim.in-use]
            It is being deleted, and stays Terminating until pods default/a, default/b no longer use it.
        ",
    );
    for pod in ["a", "b"] {
        cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: pod.into() });
    }
    cluster.edit(
        &claim("data"),
        json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/backup"]}}),
    );
    check_in(
        &cluster,
        "pvc/data",
        "
            default/data is Bound (Terminating)   [claim.bound.correct]
            The claim and its volume refer to each other. Any field of the bind that is still missing is written.
              requests  1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              also      The claim is Terminating, and a live list shows that no pod uses it. The protection finalizer is removed, and the claim can be deleted. [protection.claim.remove-finalizer]
              next      updates PersistentVolumeClaim default/data: The claim is Terminating, and a live list shows that no pod uses it. The protection finalizer is removed, and the claim can be deleted.
            It is being deleted, and stays Terminating until finalizer example.com/backup is removed by its owner.
        ",
    );
}

#[test]
fn terminating_volume_shows_its_claim() {
    let mut cluster = cluster("pv disk 1Gi Bound ->data#1\npvc data#1 1Gi Bound vol=disk bc", &[]);
    let held = json!({"metadata": {"finalizers": ["kubernetes.io/pv-protection"], "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    cluster.edit(&ObjectKey::volume("disk"), held);
    check_in(
        &cluster,
        "pv/disk",
        "
            disk is Bound (Terminating)   [volume.claimed.bound]
            The volume and its claim refer to each other. The volume's phase is Bound.
              provides      1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bound         is bound to default/data
              also          The volume is Terminating and bound to a claim. It stays until the claim is deleted. (bound to PersistentVolumeClaim default/data) [protection.volume.in-use]
              default/data  is bound to it
            It is being deleted, and stays Terminating until claim default/data is deleted.
        ",
    );
}

#[test]
fn expanding_claim_shows_the_external_resizer() {
    let cluster = cluster("pv disk 1Gi Bound ->data#1\npvc data#1 2Gi Bound vol=disk bc got=1Gi/RWO,ROX", &[]);
    check_in(
        &cluster,
        "pvc/data",
        "
            default/data is Bound   [claim.bound.correct]
            The claim and its volume refer to each other. Any field of the bind that is still missing is written.
              requests  2Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              also      The claim requests more than its capacity. An external resizer expands the volume. [expansion.external]
              event     ExternalExpanding: waiting for an external controller to expand this PVC
        ",
    );
}
