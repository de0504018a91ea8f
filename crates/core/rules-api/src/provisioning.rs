//! Provision requests: what a provisioner asks its storage to create for a claim.

use bindery_model::{Annotation, Attempt, ClaimKey, Name, Record, finalizer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Failure;

/// A topology segment: labels with their values, sorted by label. It matches the nodes that have
/// all of them.
pub type Term = Vec<(Name, Name)>;

/// The topology that a volume must be accessible from, as in CSI's `TopologyRequirement`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accessibility {
    /// The volume must be accessible from at least one of these segments.
    pub requisite: Vec<Term>,
    /// The same segments in order of preference.
    pub preferred: Vec<Term>,
}

/// A request for storage for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionRequest {
    /// The claim.
    pub claim: ClaimKey,
    /// The claim's UID.
    pub uid: Name,
    /// The claim's resourceVersion.
    pub version: u64,
    /// The claim's StorageClass.
    pub class: Name,
    /// The class's resourceVersion; 0 if it is not known.
    pub class_version: u64,
    /// The provisioner that the class names.
    pub provisioner: Name,
    /// The name of the volume. It derives from the claim's UID, so repeating the request creates no
    /// second volume.
    pub volume: Name,
    /// Whether the volume gets a finalizer that keeps it until its backing storage is deleted.
    pub has_finalizer: bool,
    /// The node that the scheduler selected, if any.
    pub node: Option<Name>,
    /// The required topology; `None` for no requirement. An error when it cannot be determined.
    pub topology: Result<Option<Accessibility>, Failure>,
    /// The attempt that is recorded for this call; `None` before there is a record, and always for
    /// in-tree provisioning, which needs none.
    pub attempt: Option<Attempt>,
}

impl ProvisionRequest {
    /// Completes the PersistentVolume that a storage returned with its name, claimRef, class,
    /// provisioner annotation and finalizer.
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

    /// Wraps the output of `Prepare` with the claim, node and topology it is valid for.
    pub fn prepared(&self, found: Value) -> Value {
        let node = self.node.as_ref().map(|node| node.as_str());
        let topology = self.topology.as_ref().ok();
        json!({"uid": self.uid.as_str(), "node": node, "topology": topology, "found": found})
    }

    /// Whether prepared output is valid for this claim, node and topology.
    pub fn is_prepared(&self, prepared: &Value) -> bool {
        let node = self.node.as_ref().map(|node| node.as_str());
        let same_topology = self.topology.as_ref().is_ok_and(|topology| json!(topology) == prepared["topology"]);
        prepared["uid"] == *self.uid.as_str() && prepared["node"].as_str() == node && same_topology
    }

    /// The provisioning record of this request's first attempt, with the output of `Prepare`.
    pub fn record(&self, driver: &Name, attempt: &Attempt, prepared: &Value) -> Value {
        let request = Recorded {
            driver: driver.clone(),
            version: self.version,
            class: self.class.clone(),
            provisioner: self.provisioner.clone(),
            volume: self.volume.clone(),
            finalizer: self.has_finalizer,
            node: self.node.clone(),
            topology: self.topology.clone().ok().flatten(),
            found: prepared["found"].clone(),
        };
        json!({
            "metadata": {"name": self.uid.as_str()},
            "claim": {"namespace": self.claim.namespace.as_str(), "name": self.claim.name.as_str()},
            "attempt": attempt,
            "outcomeUnknown": false,
            "request": request,
        })
    }
}

/// A request as it is stored in a provisioning record. It contains everything that is needed to
/// repeat the call without the claim and its class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// The provisioner whose storage was called.
    pub driver: Name,
    /// The claim's resourceVersion.
    pub version: u64,
    /// The claim's StorageClass.
    pub class: Name,
    /// The provisioner that the class named.
    pub provisioner: Name,
    /// The name of the volume.
    pub volume: Name,
    /// Whether the volume gets a finalizer.
    pub finalizer: bool,
    /// The selected node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// The required topology, complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Accessibility>,
    /// The output of `Prepare`.
    pub found: Value,
}

impl Recorded {
    /// The request in a record.
    pub fn of(record: &Record) -> Result<Recorded, String> {
        Recorded::deserialize(&*record.request).map_err(|error| error.to_string())
    }

    /// The request in the latest attempt of its record, and its prepared output.
    pub fn request(self, record: &Record) -> (ProvisionRequest, Value) {
        let request = ProvisionRequest {
            claim: record.claim.clone(),
            uid: record.meta.name.clone(),
            version: self.version,
            class: self.class,
            class_version: 0,
            provisioner: self.provisioner,
            volume: self.volume,
            has_finalizer: self.finalizer,
            node: self.node,
            topology: Ok(self.topology),
            attempt: Some(record.attempt.clone()),
        };
        let prepared = request.prepared(self.found);
        (request, prepared)
    }
}
