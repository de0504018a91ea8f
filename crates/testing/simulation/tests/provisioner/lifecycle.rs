//! The lifecycle of a volume, with the binder: requested, provisioned, bound, released, deleted.

use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::FailureEffect;
use bindery_simulation::storage::Response;
use serde_json::json;

use crate::case::{Case, case};
use crate::faults::recover;

fn claim() -> ObjectKey {
    ClaimKey::new("default", "c").into()
}

pub fn cases() -> Vec<Case> {
    vec![
        case("from claim to volume")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .end(
                "pv  pvc-u1 1Gi Bound ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u1 1Gi Bound class=gold sp=csi.example.com vol=pvc-u1 bc bbc",
            ),
        case("from claim to volume to deletion")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .then(|cluster| {
                assert_eq!(cluster.storage.as_ref().map(|storage| storage.handles.len()), Some(1));
                cluster.delete(&claim());
            })
            .end(""),
        case("all answers of the storage backend are lost for a while")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .storage(|storage| {
                storage.create_responses = [Response::DoneAnswerLost, Response::Fails(FailureEffect::Unknown)].into();
                storage.delete_responses = [Response::DoneAnswerLost, Response::Fails(FailureEffect::Nothing)].into();
            })
            .then(|cluster| cluster.delete(&claim()))
            .end(""),
        case("the claim is deleted while the outcome is unknown: all storage is deleted")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .storage(|storage| storage.create_responses = vec![Response::DoneAnswerLost; 99].into())
            .then(|cluster| {
                cluster.delete(&claim());
                recover(cluster);
            })
            .end(""),
        case("a claim is created again under its name: each gets a volume, and the first one is deleted")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .then(|cluster| {
                cluster.delete(&claim());
                bindery_simulation::notation::add(cluster, "pvc c#u2 1Gi Pending class=gold");
            })
            .end(
                "pv  pvc-u2 1Gi Bound ->c#u2 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc c#u2 1Gi Bound class=gold sp=csi.example.com vol=pvc-u2 bc bbc",
            ),
        case("its volume is deleted before it is bound, and then the claim: both are deleted")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pv  pvc-u1 1Gi Pending ->c#u1 class=gold policy=Delete source=csi:csi.example.com by=csi.example.com fin=external-provisioner.volume.kubernetes.io/finalizer deleting
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com fin=bindery.dev/provisioning deleting",
            )
            .end(""),
        case("its policy is changed to Retain: volume and storage are kept, without a finalizer")
            .with_binder()
            .before(
                "sc  gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold",
            )
            .then(|cluster| {
                let patch = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
                cluster.edit(&ObjectKey::cluster(Kind::Volume, "pvc-u1"), patch);
            })
            .then(|cluster| cluster.delete(&claim()))
            .end("pv pvc-u1 1Gi Released ->c#u1 class=gold source=csi:csi.example.com by=csi.example.com"),
    ]
}
