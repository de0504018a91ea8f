//! Volumes: protected, and what lies behind them removed.

use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Response;
use serde_json::json;

use crate::case::{Case, case};

pub fn cases() -> Vec<Case> {
    [guards(), kept(), removed()].into_iter().flatten().collect()
}

fn guards() -> Vec<Case> {
    vec![
        case("a bound volume that will be deleted is protected, also one that somebody made by hand")
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
        case("a volume that is retained is not")
            .before("pv v 1Gi Bound ->c#u1 source=csi:csi.example.com by=csi.example.com protected fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Bound ->c#u1 source=csi:csi.example.com by=csi.example.com protected"),
        case("nor is any, where that is switched off")
            .config(|config| config.guards_volumes = false)
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=csi:csi.example.com"),
        case("by the driver that has taken over")
            .before("pv v 1Gi Bound ->c#u1 policy=Delete source=awsElasticBlockStore:x migrated=csi.example.com")
            .end("pv v 1Gi Bound ->c#u1 policy=Delete source=awsElasticBlockStore:x migrated=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer"),
    ]
}

fn kept() -> Vec<Case> {
    let kept = |name, before| case(name).before(before).unchanged().events(&[]);
    vec![
        kept("it is retained", "pv v 1Gi Released ->c#u1 source=csi:csi.example.com by=csi.example.com"),
        kept(
            "it is another's",
            "pv v 1Gi Released ->c#u1 policy=Delete source=csi:other.example.com by=other.example.com",
        ),
        kept("it is not released", "pv v 1Gi Available policy=Delete source=csi:csi.example.com by=csi.example.com"),
        kept("it cannot be understood", "pv v 1Gi Released ->c#u1 policy=Delete modes=bad source=csi:csi.example.com"),
        kept(
            "somebody deleted it, and nothing guards it any more",
            "pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b deleting",
        ),
        kept(
            "its claim lives after all",
            "pv  v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com
             pvc c#u1 1Gi Bound vol=v",
        ),
    ]
}

const RELEASED: &str = "pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer";

fn removed() -> Vec<Case> {
    vec![
        case("what lies behind it is removed, then it").before(RELEASED).end("").events(&[]),
        case("somebody deleted it already")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer deleting")
            .end(""),
        case("other finalizers stay")
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b fin=external-provisioner.volume.kubernetes.io/finalizer")
            .end("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com fin=a/b deleting"),
        case("without a guard")
            .config(|config| config.guards_volumes = false)
            .before("pv v 1Gi Released ->c#u1 policy=Delete source=csi:csi.example.com by=csi.example.com")
            .end(""),
        case("it fails, and is tried again")
            .before(RELEASED)
            .storage(|storage| {
                storage.delete_responses =
                    [Response::Fails(FailureEffect::Nothing), Response::DoneAnswerLost, Response::Fails(FailureEffect::Untried)].into();
            })
            .end("")
            .events(&[
                "Warning VolumeFailedDelete told to fail",
                "Warning VolumeFailedDelete told not to answer",
            ]),
        case("it is for somebody on another node to remove")
            .before(RELEASED)
            .storage(|storage| storage.delete_responses = vec![Response::Fails(FailureEffect::NotOurs); 99].into())
            .end(RELEASED)
            .events(&[])
            .goes_on(),
        case("it is attached: it waits until it is not")
            .config(|config| config.attaches = true)
            .before(RELEASED)
            .then(|cluster| {
                assert!(cluster.get(&ObjectKey::volume("v")).is_none(), "nothing is attached");
                bindery_simulation::notation::add(cluster, RELEASED);
                let attachment = json!({
                    "metadata": {"name": "a", "uid": "a"},
                    "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}},
                });
                cluster.put(Kind::Attachment, attachment);
            })
            .then(|cluster| {
                assert!(cluster.get(&ObjectKey::volume("v")).is_some(), "it is attached");
                cluster.remove(&ObjectKey::cluster(Kind::Attachment, "a"));
            })
            .end(""),
    ]
}
