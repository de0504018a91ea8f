//! What is said about pods and their ephemeral volumes, about what is being deleted, and about what grows.

use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_simulation::{World, notation};
use serde_json::{Value, json};

use super::check_in;

fn pod(name: &str, node: &str, volumes: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
           "spec": {"nodeName": node, "volumes": volumes}})
}

fn world(lines: &str, pods: &[Value]) -> World {
    let mut world = notation::parse(lines);
    for pod in pods {
        world.put(Kind::Pod, pod.clone());
    }
    world
}

fn claim(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

#[test]
fn a_pod_is_told_how_its_claims_stand() {
    let volumes = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]);
    let world = world(
        r"
            pv disk 1Gi Bound ->data#1
            pvc data#1 1Gi Bound vol=disk bc
            pvc p-scratch#2 1Gi Pending class=
            node n1
        ",
        &[pod("p", "", volumes)],
    );
    check_in(
        &world,
        "pod/p",
        "
            default/p is waiting for a node   [schedule.claims-rejected]
            A claim of the pod is missing, unbound, lost, being deleted or owned by another pod. The pod cannot run on any node until that changes.
              event      FailedScheduling: 0/1 nodes are available: PVC default/p-scratch was not created for pod default/p (pod is not owner). not found
              next       writes Pod default/p
              beside     A claim of that name was not made for this pod: it is left alone, and the pod waits until it is gone. (PVC default/p-scratch was not created for pod default/p (pod is not owner)) [ephemeral.conflict]
              event      FailedBinding: ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)
              data       volume data; Bound to disk
              p-scratch  ephemeral volume scratch; a claim of that name is there, and was not made for this pod
              p-cache    ephemeral volume cache; its claim does not exist yet
              node  claim data               claim p-scratch                                   claim p-cache                                     beside its claims
              n1    bound to disk, in reach  PVC default/p-scratch was not created for pod default/p (pod is not owner)  waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-cache\"  fits
            Smallest change: delete claim p-scratch, which was not made for this pod; and have claim p-cache made by the controller of ephemeral volumes. Then it can be placed on node n1.
        ",
    );
    assert_eq!(super::explain_in(&world, "pod/q"), "Pod default/q does not exist");
}

#[test]
fn a_claim_that_does_not_go_says_who_holds_it() {
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pods = [pod("b", "node", volumes.clone()), pod("a", "node", volumes.clone()), pod("waiting", "", volumes)];
    let mut world = world("pv disk 1Gi Bound ->data#1\npvc data#1 1Gi Bound vol=disk bc", &pods);
    let held = json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"], "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.edit(&claim("data"), held);
    check_in(
        &world,
        "pvc/data",
        "
            default/data is Bound, and being deleted   [claim.bound.correct]
            Claim and volume belong to each other: whatever is still missing of the bind is written.
              asks for  1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              beside    Somebody deleted the claim, and pods that have a node use it: it stays until they are gone. (held by Pod default/a, Pod default/b) [protection.claim.held]
            It is being deleted, and goes when pod default/a, pod default/b are gone.
        ",
    );
    for pod in ["a", "b"] {
        world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: pod.into() });
    }
    world.edit(
        &claim("data"),
        json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/backup"]}}),
    );
    check_in(
        &world,
        "pvc/data",
        "
            default/data is Bound, and being deleted   [claim.bound.correct]
            Claim and volume belong to each other: whatever is still missing of the bind is written.
              asks for  1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              beside    Somebody deleted the claim, and a live list shows that no pod uses it: it may go. [protection.claim.let-go]
              next      writes PersistentVolumeClaim default/data: Somebody deleted the claim, and a live list shows that no pod uses it: it may go.
            It is being deleted, and goes when whoever put them there removes the finalizers example.com/backup.
        ",
    );
}

#[test]
fn a_volume_that_does_not_go_says_whose_it_is() {
    let mut world = world("pv disk 1Gi Bound ->data#1\npvc data#1 1Gi Bound vol=disk bc", &[]);
    let held = json!({"metadata": {"finalizers": ["kubernetes.io/pv-protection"], "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.edit(&ObjectKey::volume("disk"), held);
    check_in(
        &world,
        "pv/disk",
        "
            disk is Bound, and being deleted   [volume.claimed.bound]
            The volume belongs to a claim that points at it: it is Bound.
              offers        1Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bound         is bound to default/data
              beside        Somebody deleted the volume, and it is bound to a claim: it stays until the claim is gone. (held by PersistentVolumeClaim default/data) [protection.volume.held]
              default/data  is bound to it
            It is being deleted, and goes when claim default/data is gone.
        ",
    );
}

#[test]
fn a_claim_that_grows_says_who_makes_it_so() {
    let world = world("pv disk 1Gi Bound ->data#1\npvc data#1 2Gi Bound vol=disk bc got=1Gi/RWO,ROX", &[]);
    check_in(
        &world,
        "pvc/data",
        "
            default/data is Bound   [claim.bound.correct]
            Claim and volume belong to each other: whatever is still missing of the bind is written.
              asks for  2Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to disk
              beside    The claim asks for more than it has: an external resizer makes its volume grow. [expansion.waits]
              event     ExternalExpanding: waiting for an external controller to expand this PVC
        ",
    );
}
