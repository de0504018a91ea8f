//! Orders: what a storage is asked for, and the intent that is put down on the claim before it is.

use bindery_model::{Annotation, ClaimKey, Name, finalizer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Failure;

/// Labels with their values, sorted by label: the nodes that have all of them.
pub type Term = Vec<(Name, Name)>;

/// From where a volume has to be reachable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accessibility {
    /// From one of these at least.
    pub requisite: Vec<Term>,
    /// From the first of these that can be had.
    pub preferred: Vec<Term>,
}

/// Storage to be made for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionRequest {
    /// The claim.
    pub claim: ClaimKey,
    /// Which claim of that name, and in which state.
    pub uid: Name,
    /// The version of that state.
    pub version: u64,
    /// Its class.
    pub class: Name,
    /// Who makes the volumes of that class.
    pub provisioner: Name,
    /// The name of the volume. It derives from the claim's UID, so that asking twice makes one.
    pub volume: Name,
    /// Whether the volume is to be guarded by a finalizer until what lies behind it is removed.
    pub has_finalizer: bool,
    /// The node that was chosen for it, if any.
    pub node: Option<Name>,
    /// From where it has to be reachable; `None` where nothing is asked. Why that cannot be said, where it cannot.
    pub topology: Result<Option<Accessibility>, Failure>,
    /// The turn that the claim's intent is in; `None` where nothing was put down yet.
    pub turn: Option<Attempt>,
}

/// Who has put an intent down last, and how often that was done. Whoever asks a storage does so in a turn of its own: a write
/// that ends an earlier turn, however late it comes, ends this one no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Which instance of the provisioner.
    pub instance: Name,
    /// The first is 1.
    pub number: u64,
}

impl ProvisionRequest {
    /// The volume, from what a storage says of what it has made: what ties it to its claim is put in.
    pub fn complete(&self, mut volume: Value) -> Value {
        if !volume.is_object() {
            volume = json!({});
        }
        volume["apiVersion"] = "v1".into();
        volume["kind"] = "PersistentVolume".into();
        for part in ["metadata", "spec"] {
            if !volume[part].is_object() {
                volume[part] = json!({});
            }
        }
        volume["metadata"]["name"] = self.volume.as_str().into();
        if self.has_finalizer {
            volume["metadata"]["finalizers"] = json!([finalizer::EXTERNAL_PROVISIONER]);
        }
        if !volume["metadata"]["annotations"].is_object() {
            volume["metadata"]["annotations"] = json!({});
        }
        volume["metadata"]["annotations"][Annotation::ProvisionedBy.key()] = self.provisioner.as_str().into();
        volume["spec"]["storageClassName"] = self.class.as_str().into();
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": self.claim.namespace.as_str(),
            "name": self.claim.name.as_str(),
            "uid": self.uid.as_str(),
            "resourceVersion": self.version.to_string(),
        });
        volume
    }

    /// What was found out for it, in the form in which it is remembered: for whom, where, and in which turn.
    pub fn prepared(&self, found: Value) -> Value {
        let node = self.node.as_ref().map(|node| node.as_str());
        let topology = self.topology.as_ref().ok();
        json!({"uid": self.uid.as_str(), "node": node, "topology": topology, "turn": self.turn, "found": found})
    }

    /// Whether something was found out for this very order, in whatever turn.
    pub fn is_prepared(&self, prepared: &Value) -> bool {
        let node = self.node.as_ref().map(|node| node.as_str());
        let is_there = self.topology.as_ref().is_ok_and(|topology| json!(topology) == prepared["topology"]);
        prepared["uid"] == *self.uid.as_str() && prepared["node"].as_str() == node && is_there
    }

    /// Whether the intent on a claim, which was just read, is in the turn of this order: if not, somebody has asked since, or
    /// knows already what there is.
    pub fn is_intended(&self, claim: &Value) -> bool {
        let mut finalizers = claim["metadata"]["finalizers"].as_array().into_iter().flatten();
        let text = claim["metadata"]["annotations"][Annotation::Provisioning.key()].as_str();
        let turn = text.and_then(Intent::parse).map(|intent| intent.turn);
        finalizers.any(|name| *name == *finalizer::PROVISIONING) && turn == self.turn
    }
}

/// What is put down on a claim before storage is asked for: whatever happens then, whoever comes after knows that there may be
/// storage for the claim, and asks for just the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intent {
    /// Who is about to ask.
    pub provisioner: Name,
    /// The node that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// From where the storage has to be reachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Accessibility>,
    /// Whose turn it is to ask.
    pub turn: Attempt,
}

impl Intent {
    /// Reads an intent; `None` when somebody wrote something else there.
    pub fn parse(text: &str) -> Option<Intent> {
        serde_json::from_str(text).ok()
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}
