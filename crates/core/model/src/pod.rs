//! Pods, and the claims they use.

use std::cmp::Reverse;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::disk::{WireDisk, WireIscsi, WireRbd};
use crate::handle::{WireAzure, WireGcePd, WireId, WireInTree};
use crate::scheduling::WireSpec;
use crate::{Claim, ClaimKey, Disk, FieldError, Meta, Name, Scheduling};

/// The namespace and name of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The place of a pod in the scheduling queue: by priority, creation time and name.
pub type QueueOrder = (Reverse<i32>, Name, PodKey);

/// The phase of a pod, as far as rules distinguish them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// Pending, Running or Unknown.
    #[default]
    Active,
    /// All containers terminated successfully.
    Succeeded,
    /// All containers terminated, and at least one failed.
    Failed,
}

/// A volume of a pod that is backed by a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodVolume {
    /// Its name in the pod.
    pub name: Name,
    /// The name of the claim, which for an ephemeral volume is derived from the pod and the volume.
    pub claim: Name,
    /// The claim template of an ephemeral volume, as JSON; `None` if the volume names its claim.
    pub template: Option<Name>,
}

impl PodVolume {
    /// Whether its claim is created for the pod and deleted with it.
    pub fn is_ephemeral(&self) -> bool {
        self.template.is_some()
    }
}

/// The fields of a Pod that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its identity and version.
    pub meta: Meta,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The node it is assigned to; empty while it waits for one.
    pub node: Name,
    /// Its phase.
    pub phase: PodPhase,
    /// Whether a container may be running: one that is not reported as waiting or terminated.
    pub has_running_container: bool,
    /// Whether the kubelet has terminated it after its deletion: the grace period is zero.
    pub is_shut_down: bool,
    /// Its volumes that are backed by claims, in order.
    pub volumes: Box<[PodVolume]>,
    /// The disks that it refers to inline; rare.
    pub disks: Box<[Disk]>,
    /// The fields for scheduling, apart from its volumes.
    pub scheduling: Box<Scheduling>,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl Pod {
    /// Decodes a pod. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Pod, FieldError> {
        decode(json)
    }

    /// Its namespace and name.
    pub fn key(&self) -> PodKey {
        PodKey { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// The claims that it uses.
    pub fn claim_keys(&self) -> impl Iterator<Item = ClaimKey> {
        self.volumes.iter().map(|volume| self.claim_key(volume))
    }

    /// The claim of one of its volumes.
    pub fn claim_key(&self, volume: &PodVolume) -> ClaimKey {
        ClaimKey { namespace: self.meta.namespace.clone(), name: volume.claim.clone() }
    }

    /// Its ephemeral volumes, and their positions in `volumes`.
    pub fn ephemeral(&self) -> impl Iterator<Item = (usize, &PodVolume)> {
        self.volumes.iter().enumerate().filter(|(_, volume)| volume.is_ephemeral())
    }

    /// Whether it is the controlling owner of a claim, by UID.
    pub fn owns(&self, claim: &Claim) -> bool {
        claim.meta.namespace == self.meta.namespace && claim.controller.as_ref() == Some(&self.meta.uid)
    }

    /// Whether it protects a claim from deletion: it is assigned to a node and uses the claim. Its
    /// phase does not matter, but a pod that was shut down no longer protects its ephemeral claims.
    pub fn protects(&self, claim: &Claim) -> bool {
        !self.node.is_empty() && self.volumes_of(claim).any(|volume| !volume.is_ephemeral() || !self.is_shut_down)
    }

    /// Whether it uses a claim and has not terminated, even if it waits for a node.
    pub fn uses(&self, claim: &Claim) -> bool {
        !self.is_terminated() && self.volumes_of(claim).next().is_some()
    }

    /// Its volumes that are backed by a claim.
    fn volumes_of(&self, claim: &Claim) -> impl Iterator<Item = &PodVolume> {
        let is_same_namespace = claim.meta.namespace == self.meta.namespace;
        let is_backed = move |volume: &&PodVolume| {
            is_same_namespace && volume.claim == claim.meta.name && (!volume.is_ephemeral() || self.owns(claim))
        };
        self.volumes.iter().filter(is_backed)
    }

    /// Its place in the scheduling queue: higher priority first, then older.
    pub fn queue_order(&self) -> QueueOrder {
        (Reverse(self.scheduling.priority), self.scheduling.created.clone(), self.key())
    }

    /// Whether all its containers terminated, so that it uses no resources of its node.
    pub fn is_finished(&self) -> bool {
        self.phase != PodPhase::Active
    }

    /// Whether it no longer uses its volumes.
    pub fn is_terminated(&self) -> bool {
        self.phase != PodPhase::Active || (self.deleting && !self.has_running_container)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
    status: WireStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireVolume {
    name: Name,
    persistent_volume_claim: Option<WireClaim>,
    ephemeral: Option<WireEphemeral>,
    iscsi: Option<WireIscsi>,
    rbd: Option<WireRbd>,
    aws_elastic_block_store: Option<WireId>,
    gce_persistent_disk: Option<WireGcePd>,
    azure_disk: Option<WireAzure>,
    cinder: Option<WireId>,
    portworx_volume: Option<WireId>,
}

impl WireVolume {
    /// The inline disk, if the volume is one.
    fn disk(&mut self) -> Option<Disk> {
        let in_tree = WireInTree {
            aws_elastic_block_store: self.aws_elastic_block_store.take(),
            gce_persistent_disk: self.gce_persistent_disk.take(),
            azure_disk: self.azure_disk.take(),
            cinder: self.cinder.take(),
            portworx_volume: self.portworx_volume.take(),
        };
        WireDisk { iscsi: self.iscsi.take(), rbd: self.rbd.take(), in_tree }.parse()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireEphemeral {
    volume_claim_template: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireClaim {
    claim_name: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    phase: Option<Name>,
    nominated_node_name: Option<Name>,
    conditions: Option<Vec<WireCondition>>,
    init_container_statuses: Option<Vec<WireContainer>>,
    container_statuses: Option<Vec<WireContainer>>,
    ephemeral_container_statuses: Option<Vec<WireContainer>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireContainer {
    state: Option<WireState>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireState {
    waiting: Option<IgnoredAny>,
    terminated: Option<IgnoredAny>,
}

impl WireState {
    fn is_stopped(&self) -> bool {
        self.waiting.is_some() || self.terminated.is_some()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireCondition {
    r#type: Name,
    status: Name,
    message: Name,
}

impl WireStatus {
    /// The message of the condition that it is unschedulable.
    fn unschedulable(&mut self) -> Option<Name> {
        let conditions = self.conditions.take().unwrap_or_default();
        let is_false = |condition: &WireCondition| condition.r#type == "PodScheduled" && condition.status == "False";
        conditions.into_iter().find(is_false).map(|condition| condition.message)
    }

    fn has_running_container(&self) -> bool {
        [&self.init_container_statuses, &self.container_statuses, &self.ephemeral_container_statuses]
            .into_iter()
            .flatten()
            .flatten()
            .any(|container| !container.state.as_ref().is_some_and(WireState::is_stopped))
    }
}

impl FromWire for Pod {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut errors: FieldErrors) -> Pod {
        let meta = wire.metadata.meta(&mut errors);
        let labels = std::mem::take(&mut wire.metadata.labels.0);
        let created = wire.metadata.creation_timestamp.take().unwrap_or_default();
        let mut volumes = wire.spec.volumes.take().unwrap_or_default();
        let node = wire.spec.node_name.take().unwrap_or_default();
        let mut scheduling = wire.spec.parse(&mut errors, labels, created);
        scheduling.nominated_node = wire.status.nominated_node_name.take().unwrap_or_default();
        scheduling.unschedulable = wire.status.unschedulable();
        let claim_of = |volume: WireVolume| match volume {
            WireVolume { persistent_volume_claim: Some(claim), name, .. } => {
                let named = PodVolume { name, claim: claim.claim_name, template: None };
                (!named.claim.is_empty()).then_some(named)
            }
            WireVolume { ephemeral: Some(ephemeral), name, .. } => Some(PodVolume {
                claim: format!("{}-{name}", meta.name).into(),
                template: Some(ephemeral.volume_claim_template.map_or("{}".into(), |template| template.get().into())),
                name,
            }),
            WireVolume { .. } => None,
        };
        Pod {
            disks: volumes.iter_mut().filter_map(WireVolume::disk).collect(),
            volumes: volumes.into_iter().filter_map(claim_of).collect(),
            scheduling: Box::new(scheduling),
            is_shut_down: wire.metadata.is_deleting() && wire.metadata.grace_seconds() == Some(0),
            deleting: wire.metadata.is_deleting(),
            node,
            has_running_container: wire.status.has_running_container(),
            phase: match wire.status.phase.as_deref() {
                Some("Succeeded") => PodPhase::Succeeded,
                Some("Failed") => PodPhase::Failed,
                // Pending, Running, Unknown or a phase of a later version: it may use its volumes.
                _ => PodPhase::Active,
            },
            meta,
            field_error: errors.into_error(),
        }
    }
}
