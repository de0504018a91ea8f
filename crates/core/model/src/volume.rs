//! Volumes (PersistentVolume).

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::{FieldErrors, FromWire, WireMeta, WireResources, decode};
use crate::handle::{WireAzure, WireGcePd, WireId, WireInTree};
use crate::node_selector::WireNodeSelector;
use crate::{
    AccessModes, Annotation, Annotations, Attacher, Claim, ClaimKey, FieldError, Handle, Labels, Meta, NONE, Name,
    NodeSelector, Quantity,
};

/// Whether a volume is mounted as a file system or used as a raw block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VolumeMode {
    /// A file system; the default.
    #[default]
    Filesystem,
    /// A block device.
    Block,
}

impl VolumeMode {
    /// The name in the API.
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

/// The phase of a volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum VolumePhase {
    /// It is new.
    #[default]
    Pending,
    /// It is not bound; it may be reserved for a claim.
    Available,
    /// It is bound to a claim.
    Bound,
    /// Its claim was deleted, and it is not reclaimed yet.
    Released,
    /// Its reclamation failed.
    Failed,
}

impl VolumePhase {
    const ALL: [VolumePhase; 5] =
        [VolumePhase::Pending, VolumePhase::Available, VolumePhase::Bound, VolumePhase::Released, VolumePhase::Failed];

    /// The name in the API.
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

    /// Whether its claim was deleted, according to the phase.
    pub fn is_released(self) -> bool {
        matches!(self, VolumePhase::Released | VolumePhase::Failed)
    }
}

/// What happens to a volume when its claim is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// It is kept for manual reclamation.
    #[default]
    Retain,
    /// It and its backing storage are deleted.
    Delete,
    /// It is scrubbed and made available again.
    Recycle,
    /// Any other value.
    Unknown(Name),
}

impl ReclaimPolicy {
    /// The name in the API.
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

/// The source of a volume, as far as rules distinguish them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// A directory on a host.
    HostPath(Name),
    /// An NFS export.
    Nfs(Box<(Name, Name)>),
    /// A volume of a CSI driver.
    Csi(Name),
    /// A volume of an in-tree plugin that is migrated to CSI, by the name of the plugin.
    Migrated(&'static str),
    /// A volume of a Flex driver.
    Flex(Name),
    /// A disk or directory of one node, by its path.
    Local(Name),
    /// Any other source.
    #[default]
    Other,
}

/// The claim that a volume is bound to or reserved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRef {
    /// Its namespace and name.
    pub key: ClaimKey,
    /// Its UID; empty for any claim with that name.
    pub uid: Name,
}

/// The fields of a PersistentVolume that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its identity and version.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// Its finalizers.
    pub finalizers: Box<[Name]>,
    /// Its labels.
    pub labels: Labels,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The claim that it is bound to or reserved for.
    pub claim_ref: Option<ClaimRef>,
    /// Its capacity; `None` counts as zero.
    pub capacity: Option<Quantity>,
    /// Its access modes.
    pub modes: AccessModes,
    /// File system or block device.
    pub volume_mode: VolumeMode,
    /// `spec.storageClassName`; use [`Volume::class`] for the class it has.
    pub class_field: Name,
    /// Its VolumeAttributesClass.
    pub attributes_class: Option<Name>,
    /// Its reclaim policy.
    pub policy: ReclaimPolicy,
    /// Its source.
    pub source: Source,
    /// The identity of its backing storage, if it is attached to nodes.
    pub handle: Option<Box<Handle>>,
    /// Its node affinity; all nodes can reach it when absent.
    pub nodes: Option<Box<NodeSelector>>,
    /// Its phase.
    pub phase: VolumePhase,
    /// The message for its phase.
    pub message: Name,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
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

    /// Its class: the beta annotation if present, else the field; empty when it has none.
    pub fn class(&self) -> &Name {
        self.annotations.get(Annotation::BetaStorageClass).unwrap_or(&self.class_field)
    }

    /// Its capacity.
    pub fn size(&self) -> &Quantity {
        self.capacity.as_ref().unwrap_or(Quantity::zero())
    }

    /// Its VolumeAttributesClass; empty when none.
    pub fn attributes(&self) -> &Name {
        self.attributes_class.as_ref().unwrap_or(&NONE)
    }

    /// Whether a node with these labels can reach it.
    pub fn is_reachable(&self, labels: &Labels) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.matches(labels, None))
    }

    /// Whether any matching claim may get it. A new volume counts even before its phase is
    /// Available.
    pub fn is_free(&self) -> bool {
        self.claim_ref.is_none()
            && !self.deleting
            && !self.is_scrubbing()
            && self.field_error.is_none()
            && matches!(self.phase, VolumePhase::Available | VolumePhase::Pending)
    }

    /// Whether a recycler pod may be scrubbing it.
    pub fn is_scrubbing(&self) -> bool {
        self.annotations.has(Annotation::Scrubbing)
    }

    /// Whether its `spec.claimRef` names a claim, with the same UID or none: it is bound to the
    /// claim or reserved for it.
    pub fn refers_to(&self, claim: &Claim) -> bool {
        self.claim_ref.as_ref().is_some_and(|reserved| {
            reserved.key.name == claim.meta.name
                && reserved.key.namespace == claim.meta.namespace
                && (reserved.uid.is_empty() || reserved.uid == claim.meta.uid)
        })
    }

    /// Whether its `spec.claimRef` has this UID.
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
    /// The identity of the backing storage.
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

    /// The in-tree plugin of the source, if it is migrated to CSI.
    fn migrated(&self, handle: Option<&Handle>) -> Option<&'static str> {
        let others =
            [(&self.azure_file, "kubernetes.io/azure-file"), (&self.vsphere_volume, "kubernetes.io/vsphere-volume")];
        let other = || others.into_iter().find(|(source, _)| source.is_some()).map(|(_, plugin)| plugin);
        handle.and_then(|handle| handle.by.plugin()).or_else(other)
    }
}

impl FromWire for Volume {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Volume {
        let Wire { mut metadata, mut spec, status } = wire;
        let handle = spec.handle().map(Box::new);
        let source = spec.source(handle.as_deref());
        let names = spec.access_modes.unwrap_or_default();
        let claim_ref = spec.claim_ref.map(|claim| ClaimRef {
            key: ClaimKey { namespace: claim.namespace.unwrap_or_default(), name: claim.name.unwrap_or_default() },
            uid: claim.uid.unwrap_or_default(),
        });
        Volume {
            meta: metadata.meta(&mut errors),
            finalizers: metadata.finalizers(),
            deleting: metadata.is_deleting(),
            annotations: metadata.annotations,
            labels: metadata.labels.0,
            claim_ref,
            capacity: errors.quantity("spec.capacity.storage", spec.capacity.and_then(|c| c.storage)),
            modes: errors.access_modes("spec.accessModes", &names),
            volume_mode: errors.enumeration("spec.volumeMode", spec.volume_mode, VolumeMode::parse),
            class_field: spec.storage_class_name.unwrap_or_default(),
            attributes_class: spec.volume_attributes_class_name,
            policy: ReclaimPolicy::parse(spec.persistent_volume_reclaim_policy.unwrap_or_default()),
            source,
            handle,
            nodes: spec.node_affinity.and_then(|nodes| nodes.required).map(|nodes| Box::new(nodes.parse())),
            phase: errors.enumeration("status.phase", status.phase, VolumePhase::parse),
            message: status.message.unwrap_or_default(),
            field_error: errors.into_error(),
        }
    }
}
