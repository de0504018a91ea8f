//! A pod: who uses claims, and where.

use std::cmp::Reverse;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::disk::{WireDisk, WireIscsi, WireRbd};
use crate::handle::{WireAzure, WireGcePd, WireId, WireInTree};
use crate::scheduling::WireSpec;
use crate::{Claim, ClaimKey, Disk, FieldError, Meta, Name, Scheduling};

/// Where a pod lives.
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

/// A pod's turn: by priority, time and name.
pub type QueueOrder = (Reverse<i32>, Name, PodKey);

/// How far a pod has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// It runs, will run, or nobody knows.
    #[default]
    Active,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}

/// A volume of a pod that is a claim's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodVolume {
    /// Its name in the pod.
    pub name: Name,
    /// The claim: the one that it names, or the one that stands for it.
    pub claim: Name,
    /// For an ephemeral volume, what its claim is made from, as JSON; a volume that names its claim has none.
    pub template: Option<Name>,
}

impl PodVolume {
    /// Whether its claim is made for the pod, and goes with it.
    pub fn is_ephemeral(&self) -> bool {
        self.template.is_some()
    }
}

/// A pod, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Who it is.
    pub meta: Meta,
    /// Whether somebody deleted it.
    pub deleting: bool,
    /// The node it was given; empty while it waits for one.
    pub node: Name,
    /// How far it has come.
    pub phase: PodPhase,
    /// Whether one of its containers runs, as far as is known: one of which nothing is said may.
    pub has_running_container: bool,
    /// Whether it was deleted and its node has let go of it: no time of grace is left.
    pub is_shut_down: bool,
    /// Its volumes that are claims', in order.
    pub volumes: Box<[PodVolume]>,
    /// The disks that it names itself; there are hardly any today.
    pub disks: Box<[Disk]>,
    /// What decides where it runs, beside its volumes.
    pub scheduling: Box<Scheduling>,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Pod {
    /// Decodes a pod. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Pod, FieldError> {
        decode(json)
    }

    /// Where it lives.
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

    /// Its volumes that claims are made for, and their places among its claims' volumes.
    pub fn ephemeral(&self) -> impl Iterator<Item = (usize, &PodVolume)> {
        self.volumes.iter().enumerate().filter(|(_, volume)| volume.is_ephemeral())
    }

    /// Whether a claim was made for it. Only the UID counts.
    pub fn owns(&self, claim: &Claim) -> bool {
        claim.meta.namespace == self.meta.namespace && claim.controller.as_ref() == Some(&self.meta.uid)
    }

    /// Whether a claim must not go while this pod is there: the pod has a node, and one of its volumes is the claim's. What it
    /// has come to does not count, except that a pod whose node has let go of it holds no ephemeral claim any more.
    pub fn holds(&self, claim: &Claim) -> bool {
        !self.node.is_empty() && self.volumes_of(claim).any(|volume| !volume.is_ephemeral() || !self.is_shut_down)
    }

    /// Whether a claim is in use because of this pod, be it that it waits for a node.
    pub fn uses(&self, claim: &Claim) -> bool {
        !self.is_terminated() && self.volumes_of(claim).next().is_some()
    }

    /// Its volumes that are this very claim's.
    fn volumes_of(&self, claim: &Claim) -> impl Iterator<Item = &PodVolume> {
        let is_here = claim.meta.namespace == self.meta.namespace;
        let of_it = move |volume: &&PodVolume| {
            is_here && volume.claim == claim.meta.name && (!volume.is_ephemeral() || self.owns(claim))
        };
        self.volumes.iter().filter(of_it)
    }

    /// Its turn among those that wait for a node: who matters more, then who came first.
    pub fn turn(&self) -> QueueOrder {
        (Reverse(self.scheduling.priority), self.scheduling.created.clone(), self.key())
    }

    /// Whether it has ended, and takes nothing of its node any more.
    pub fn is_over(&self) -> bool {
        self.phase != PodPhase::Active
    }

    /// Whether it uses its volumes no more.
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
    /// The disk that the pod names itself, if it is one.
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
    fn is_at_rest(&self) -> bool {
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
    /// Why no node will do, if somebody said that none does.
    fn unschedulable(&mut self) -> Option<Name> {
        let conditions = self.conditions.take().unwrap_or_default();
        let is_it = |condition: &WireCondition| condition.r#type == "PodScheduled" && condition.status == "False";
        conditions.into_iter().find(is_it).map(|condition| condition.message)
    }

    fn has_running_container(&self) -> bool {
        [&self.init_container_statuses, &self.container_statuses, &self.ephemeral_container_statuses]
            .into_iter()
            .flatten()
            .flatten()
            .any(|container| !container.state.as_ref().is_some_and(WireState::is_at_rest))
    }
}

impl Lean for Pod {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut flaws: FieldErrors) -> Pod {
        let meta = wire.metadata.meta(&mut flaws);
        let labels = std::mem::take(&mut wire.metadata.labels.0);
        let created = wire.metadata.creation_timestamp.take().unwrap_or_default();
        let mut volumes = wire.spec.volumes.take().unwrap_or_default();
        let node = wire.spec.node_name.take().unwrap_or_default();
        let mut scheduling = wire.spec.parse(&mut flaws, labels, created);
        scheduling.nominated = wire.status.nominated_node_name.take().unwrap_or_default();
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
                // Pending, Running, Unknown, or a word of a later version: it may use its volumes.
                _ => PodPhase::Active,
            },
            meta,
            flaw: flaws.into_flaw(),
        }
    }
}
