//! Finalizers of volumes, and deletion of their backing storage.

use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Response;
use serde_json::json;

use crate::case::{Case, case};

pub fn cases() -> Vec<Case> {
    [finalizers(), kept(), deleted()].into_iter().flatten().collect()
}

fn finalizers() -> Vec<Case> {
    vec![
        case("a bound volume with the policy Delete gets the finalizer, even if it was created manually")
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("a volume with the policy Retain does not")
            .before("pv v 1Gi Bound ->c#u1 source=csi:csi.example.com by=csi.example.com protected fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Bound ->c#u1 source=csi:csi.example.com by=csi.example.com protected"),
        case("no volume does if the feature is disabled")
            .config(|config| config.adds_finalizer = false)
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com"),
        case("a migrated volume gets it from the CSI driver")
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=awsElasticBlockStore:x migrated=csi.example.com")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=awsElasticBlockStore:x migrated=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
    ]
}

fn kept() -> Vec<Case> {
    let kept = |name, before| case(name).before(before).unchanged().events(&[]);
    vec![
        kept("it is retained", "pv v 1Gi Released ->c#u1 source=csi:csi.example.com by=csi.example.com"),
        kept(
            "it belongs to another provisioner",
            "pv v 1Gi Released ->c#u1 policy=Delete source=csi:other.example.com by=other.example.com",
        ),
        kept("it is not released", "pv v 1Gi Available policy=Delete source=csi:csi.example.com by=csi.example.com"),
        kept("it cannot be understood", "pv v 1Gi Released ->c#u1 policy=Delete modes=bad source=csi:csi.example.com"),
        kept(
            "it is being deleted without our finalizer",
            "pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b deleting",
        ),
        kept(
            "its claim exists after all",
            "pv  v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com
             pvc c#u1 1Gi Bound vol=v",
        ),
    ]
}

const RELEASED: &str = "pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer";

fn deleted() -> Vec<Case> {
    vec![
        case("the backing storage is deleted, then the volume").before(RELEASED).end("").events(&[]),
        case("it is already being deleted")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer deleting")
            .end(""),
        case("other finalizers are kept")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b deleting"),
        case("without a finalizer")
            .config(|config| config.adds_finalizer = false)
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com")
            .end(""),
        case("deletion fails and is retried")
            .before(RELEASED)
            .storage(|storage| {
                storage.delete_responses =
                    [Response::Fails(FailureEffect::Nothing), Response::DoneAnswerLost, Response::Fails(FailureEffect::NotAttempted)].into();
            })
            .end("")
            .events(&[
                "Warning VolumeFailedDelete scripted failure",
                "Warning VolumeFailedDelete scripted lost answer",
            ]),
        case("the storage must be deleted on another node")
            .before(RELEASED)
            .storage(|storage| storage.delete_responses = vec![Response::Fails(FailureEffect::NotOurs); 99].into())
            .end(RELEASED)
            .events(&[])
            .retries_forever(),
        case("it is attached: it waits until it is detached")
            .config(|config| config.attachable = true)
            .before(RELEASED)
            .then(|cluster| {
                assert!(cluster.get(&ObjectKey::volume("v")).is_none(), "the volume is not attached");
                bindery_simulation::notation::add(cluster, RELEASED);
                let attachment = json!({
                    "metadata": {"name": "a", "uid": "a"},
                    "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}},
                });
                cluster.put(Kind::Attachment, attachment);
            })
            .then(|cluster| {
                assert!(cluster.get(&ObjectKey::volume("v")).is_some(), "the volume is attached");
                cluster.remove(&ObjectKey::cluster(Kind::Attachment, "a"));
            })
            .end(""),
    ]
}
