//! A volume: a piece of storage (PersistentVolume).

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::{FieldErrors, Lean, WireMeta, WireResources, decode};
use crate::handle::{WireAzure, WireGcePd, WireId, WireInTree};
use crate::node_selector::WireNodeSelector;
use crate::{
    AccessModes, Annotation, Annotations, Attacher, ClaimKey, FieldError, Handle, Labels, Meta, NONE, Name,
    NodeSelector, Quantity,
};

/// What a volume offers, or a claim wants: a file system, or the bare device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VolumeMode {
    /// A file system; what an absent field means.
    #[default]
    Filesystem,
    /// A block device.
    Block,
}

impl VolumeMode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumeMode::Filesystem => "Filesystem",
            VolumeMode::Block => "Block",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<VolumeMode> {
        [VolumeMode::Filesystem, VolumeMode::Block].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// How a volume stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum VolumePhase {
    /// It is new.
    #[default]
    Pending,
    /// It is free, or reserved for a claim that does not know yet.
    Available,
    /// It belongs to a claim.
    Bound,
    /// Its claim is gone, and it was not reclaimed yet.
    Released,
    /// It could not be reclaimed.
    Failed,
}

impl VolumePhase {
    const ALL: [VolumePhase; 5] =
        [VolumePhase::Pending, VolumePhase::Available, VolumePhase::Bound, VolumePhase::Released, VolumePhase::Failed];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumePhase::Pending => "Pending",
            VolumePhase::Available => "Available",
            VolumePhase::Bound => "Bound",
            VolumePhase::Released => "Released",
            VolumePhase::Failed => "Failed",
        }
    }

    fn parse(text: &str) -> Option<VolumePhase> {
        VolumePhase::ALL.into_iter().find(|phase| phase.as_str() == text)
    }

    /// Whether its claim is gone, as far as the phase tells.
    pub fn is_released(self) -> bool {
        matches!(self, VolumePhase::Released | VolumePhase::Failed)
    }
}

/// What becomes of a volume when its claim is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// Nothing: a person decides.
    #[default]
    Retain,
    /// It is deleted, and what lies behind it.
    Delete,
    /// It is scrubbed and offered again.
    Recycle,
    /// A word that nobody knows.
    Unknown(Name),
}

impl ReclaimPolicy {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ReclaimPolicy::Retain => "Retain",
            ReclaimPolicy::Delete => "Delete",
            ReclaimPolicy::Recycle => "Recycle",
            ReclaimPolicy::Unknown(word) => word,
        }
    }

    pub(crate) fn parse(text: Name) -> ReclaimPolicy {
        match text.as_str() {
            "" | "Retain" => ReclaimPolicy::Retain,
            "Delete" => ReclaimPolicy::Delete,
            "Recycle" => ReclaimPolicy::Recycle,
            _ => ReclaimPolicy::Unknown(text),
        }
    }
}

/// What lies behind a volume, as far as the binder deals with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// A directory on a host.
    HostPath(Name),
    /// An NFS export.
    Nfs(Box<(Name, Name)>),
    /// A volume of a CSI driver.
    Csi(Name),
    /// A volume of an in-tree plugin, by the plugin's name, whose work a CSI driver has taken over.
    Migrated(&'static str),
    /// A volume of a Flex driver.
    Flex(Name),
    /// A disk or a directory of one node, by its path there.
    Local(Name),
    /// Something that the binder leaves to others.
    #[default]
    Other,
}

/// Which claim a volume belongs to, or is reserved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRef {
    /// Where the claim lives.
    pub key: ClaimKey,
    /// Which claim of that name; empty when any will do.
    pub uid: Name,
}

/// A volume, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// Who it is.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// What holds it back from being deleted.
    pub finalizers: Box<[Name]>,
    /// What claims select it by.
    pub labels: Labels,
    /// Whether somebody deleted it.
    pub deleting: bool,
    /// Which claim it belongs to, or is reserved for.
    pub claim_ref: Option<ClaimRef>,
    /// How much it holds; `None` counts as nothing.
    pub capacity: Option<Quantity>,
    /// How it may be mounted.
    pub modes: AccessModes,
    /// File system or block device.
    pub volume_mode: VolumeMode,
    /// `spec.storageClassName`; use [`Volume::class`] for the class it has.
    pub class_field: Name,
    /// The attributes class that it has.
    pub attributes_class: Option<Name>,
    /// What becomes of it when its claim is gone.
    pub policy: ReclaimPolicy,
    /// What lies behind it.
    pub source: Source,
    /// How what lies behind it is known to who attaches it to nodes, if anybody does.
    pub handle: Option<Box<Handle>>,
    /// Which nodes it can be reached from; from all when nothing is said.
    pub nodes: Option<Box<NodeSelector>>,
    /// How it stands.
    pub phase: VolumePhase,
    /// Why it stands so.
    pub message: Name,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Volume {
    /// Decodes a volume. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Volume, FieldError> {
        decode(json)
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.meta.name
    }

    /// Its class: the old annotation where the key is present, else the field; empty when it has none.
    pub fn class(&self) -> &Name {
        self.annotations.get(Annotation::BetaStorageClass).unwrap_or(&self.class_field)
    }

    /// How much it holds.
    pub fn holds(&self) -> &Quantity {
        self.capacity.as_ref().unwrap_or(Quantity::zero())
    }

    /// The attributes class that it has; empty when none.
    pub fn attributes(&self) -> &Name {
        self.attributes_class.as_ref().unwrap_or(&NONE)
    }

    /// Whether it can be reached from a node with these labels.
    pub fn is_reachable(&self, labels: &Labels) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.matches(labels, None))
    }

    /// Whether any claim that it fits may have it. A new volume need not wait for its Available mark.
    pub fn is_free(&self) -> bool {
        self.claim_ref.is_none()
            && !self.deleting
            && self.flaw.is_none()
            && matches!(self.phase, VolumePhase::Available | VolumePhase::Pending)
    }

    /// Whether it belongs to one very claim, or did.
    pub fn belongs_to(&self, uid: &str) -> bool {
        !uid.is_empty() && self.claim_ref.as_ref().is_some_and(|claim| claim.uid == uid)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
    status: WireStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSpec {
    capacity: Option<WireResources>,
    access_modes: Option<Vec<Name>>,
    claim_ref: Option<WireClaimRef>,
    persistent_volume_reclaim_policy: Option<Name>,
    storage_class_name: Option<Name>,
    volume_mode: Option<Name>,
    volume_attributes_class_name: Option<Name>,
    host_path: Option<WireHostPath>,
    local: Option<WireHostPath>,
    nfs: Option<WireNfs>,
    csi: Option<WireCsi>,
    flex_volume: Option<WireCsi>,
    azure_file: Option<IgnoredAny>,
    vsphere_volume: Option<IgnoredAny>,
    node_affinity: Option<WireAffinity>,
    aws_elastic_block_store: Option<WireId>,
    gce_persistent_disk: Option<WireGcePd>,
    azure_disk: Option<WireAzure>,
    cinder: Option<WireId>,
    portworx_volume: Option<WireId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAffinity {
    required: Option<WireNodeSelector>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireClaimRef {
    namespace: Option<Name>,
    name: Option<Name>,
    uid: Option<Name>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireHostPath {
    path: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNfs {
    server: Name,
    path: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCsi {
    driver: Name,
    volume_handle: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireStatus {
    phase: Option<Name>,
    message: Option<Name>,
}

impl WireSpec {
    /// How what lies behind it is known to who attaches it.
    fn handle(&mut self) -> Option<Handle> {
        if let Some(csi) = &mut self.csi {
            return Some(Handle { by: Attacher::Csi, id: std::mem::take(&mut csi.volume_handle) });
        }
        let in_tree = WireInTree {
            aws_elastic_block_store: self.aws_elastic_block_store.take(),
            gce_persistent_disk: self.gce_persistent_disk.take(),
            azure_disk: self.azure_disk.take(),
            cinder: self.cinder.take(),
            portworx_volume: self.portworx_volume.take(),
        };
        in_tree.parse().map(|(handle, _)| handle)
    }

    fn source(&mut self, handle: Option<&Handle>) -> Source {
        if let Some(host_path) = self.host_path.take() {
            Source::HostPath(host_path.path)
        } else if let Some(nfs) = self.nfs.take() {
            Source::Nfs(Box::new((nfs.server, nfs.path)))
        } else if let Some(csi) = self.csi.take() {
            Source::Csi(csi.driver)
        } else if let Some(flex) = self.flex_volume.take() {
            Source::Flex(flex.driver)
        } else if let Some(local) = self.local.take() {
            Source::Local(local.path)
        } else {
            self.migrated(handle).map_or(Source::Other, Source::Migrated)
        }
    }

    /// The in-tree plugin whose work a CSI driver has taken over, if the source is one's.
    fn migrated(&self, handle: Option<&Handle>) -> Option<&'static str> {
        let others =
            [(&self.azure_file, "kubernetes.io/azure-file"), (&self.vsphere_volume, "kubernetes.io/vsphere-volume")];
        let other = || others.into_iter().find(|(source, _)| source.is_some()).map(|(_, plugin)| plugin);
        handle.and_then(|handle| handle.by.plugin()).or_else(other)
    }
}

impl Lean for Volume {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> Volume {
        let Wire { mut metadata, mut spec, status } = wire;
        let handle = spec.handle().map(Box::new);
        let source = spec.source(handle.as_deref());
        let names = spec.access_modes.unwrap_or_default();
        let claim_ref = spec.claim_ref.map(|claim| ClaimRef {
            key: ClaimKey { namespace: claim.namespace.unwrap_or_default(), name: claim.name.unwrap_or_default() },
            uid: claim.uid.unwrap_or_default(),
        });
        Volume {
            meta: metadata.meta(&mut flaws),
            finalizers: metadata.finalizers(),
            deleting: metadata.is_deleting(),
            annotations: metadata.annotations,
            labels: metadata.labels.0,
            claim_ref,
            capacity: flaws.quantity("spec.capacity.storage", spec.capacity.and_then(|c| c.storage)),
            modes: flaws.access_modes("spec.accessModes", &names),
            volume_mode: flaws.word("spec.volumeMode", spec.volume_mode, VolumeMode::parse),
            class_field: spec.storage_class_name.unwrap_or_default(),
            attributes_class: spec.volume_attributes_class_name,
            policy: ReclaimPolicy::parse(spec.persistent_volume_reclaim_policy.unwrap_or_default()),
            source,
            handle,
            nodes: spec.node_affinity.and_then(|nodes| nodes.required).map(|nodes| Box::new(nodes.parse())),
            phase: flaws.word("status.phase", status.phase, VolumePhase::parse),
            message: status.message.unwrap_or_default(),
            flaw: flaws.into_flaw(),
        }
    }
}
