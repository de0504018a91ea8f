//! The external provisioner `example.com`: its pending claims, and its responses.

use bindery_model::{Annotation, Kind, ObjectKey};
use serde_json::{Value, json};

use crate::{SimulatedCluster, notation};

/// A claim that waits for the provisioner.
#[derive(Debug, Clone)]
pub struct PendingClaim {
    /// The claim.
    pub claim: ObjectKey,
    /// The UID of the claim.
    pub uid: String,
    /// The selected node.
    pub node: String,
    class: String,
    size: String,
}

/// Claims with a provisioner and a selected node that have no volume yet.
pub fn pending(cluster: &SimulatedCluster) -> Vec<PendingClaim> {
    let annotation =
        |claim: &Value, key: Annotation| claim["metadata"]["annotations"][key.key()].as_str().map(str::to_owned);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let claims = cluster.objects().filter(|(key, claim)| {
        key.kind == Kind::Claim && claim["spec"]["volumeName"].is_null() && !is_provisioned(cluster, claim)
    });
    let pending = claims.filter_map(|(key, claim)| {
        annotation(claim, Annotation::StorageProvisioner)?;
        Some(PendingClaim {
            claim: key.clone(),
            uid: text(&claim["metadata"]["uid"]),
            node: annotation(claim, Annotation::SelectedNode)?,
            class: text(&claim["spec"]["storageClassName"]),
            size: text(&claim["spec"]["resources"]["requests"]["storage"]),
        })
    });
    pending.collect()
}

/// Whether a volume was provisioned for a claim, even if it is not bound yet.
fn is_provisioned(cluster: &SimulatedCluster, claim: &Value) -> bool {
    let is_its = |volume: &Value| {
        volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
            && !volume["metadata"]["annotations"][Annotation::ProvisionedBy.key()].is_null()
    };
    cluster.objects().any(|(key, volume)| key.kind == Kind::Volume && is_its(volume))
}

/// Creates a volume for the selected node.
pub fn provision(cluster: &mut SimulatedCluster, claim_of: &PendingClaim, name: &str) {
    let PendingClaim { claim, uid, node, class, size } = claim_of;
    let volume = format!(
        "pv {name} {size} Pending ->{}#{uid} class={class} policy=Delete source=csi:example.com by=example.com on={node}",
        claim.name
    );
    notation::add(cluster, &volume);
}

/// Provisioning fails: the provisioner removes the selected node, so that the pod is rescheduled.
pub fn reject(cluster: &mut SimulatedCluster, claim_of: &PendingClaim) {
    let node = Annotation::SelectedNode.key();
    cluster.edit(&claim_of.claim, json!({"metadata": {"annotations": {node: null}}}));
}
