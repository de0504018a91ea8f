//! The external provisioner of `example.com`: what it is asked for, and what it does then.

use bindery_model::{Annotation, Kind, ObjectKey};
use serde_json::{Value, json};

use crate::{World, notation};

/// A volume that is to be made.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The claim that it is for.
    pub claim: ObjectKey,
    /// That claim's UID.
    pub uid: String,
    /// The node that must be able to reach it.
    pub node: String,
    class: String,
    size: String,
}

/// The volumes that are to be made: for claims with a provisioner and a node that have none yet.
pub fn asked(world: &World) -> Vec<Asked> {
    let note = |claim: &Value, annotation: Annotation| {
        claim["metadata"]["annotations"][annotation.key()].as_str().map(str::to_owned)
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let claims = world.objects().filter(|(key, claim)| {
        key.kind == Kind::Claim && claim["spec"]["volumeName"].is_null() && !is_made(world, claim)
    });
    let asked = claims.filter_map(|(key, claim)| {
        note(claim, Annotation::StorageProvisioner)?;
        Some(Asked {
            claim: key.clone(),
            uid: text(&claim["metadata"]["uid"]),
            node: note(claim, Annotation::SelectedNode)?,
            class: text(&claim["spec"]["storageClassName"]),
            size: text(&claim["spec"]["resources"]["requests"]["storage"]),
        })
    });
    asked.collect()
}

/// Whether a volume was made for a claim, though the claim may not have it yet.
fn is_made(world: &World, claim: &Value) -> bool {
    let is_its = |volume: &Value| {
        volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
            && !volume["metadata"]["annotations"][Annotation::ProvisionedBy.key()].is_null()
    };
    world.objects().any(|(key, volume)| key.kind == Kind::Volume && is_its(volume))
}

/// It makes a volume, for the node that was selected.
pub fn make(world: &mut World, asked: &Asked, name: &str) {
    let Asked { claim, uid, node, class, size } = asked;
    let volume = format!(
        "pv {name} {size} Pending ->{}#{uid} class={class} policy=Delete source=csi:example.com by=example.com on={node}",
        claim.name
    );
    notation::add(world, &volume);
}

/// It cannot make a volume: it takes the node away from the claim.
pub fn refuse(world: &mut World, asked: &Asked) {
    let node = Annotation::SelectedNode.key();
    world.edit(&asked.claim, json!({"metadata": {"annotations": {node: null}}}));
}
