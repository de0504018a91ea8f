//! Claims (PersistentVolumeClaim).

use std::fmt;

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, WireResources, decode};
use crate::selector::WireSelector;
use crate::{AccessModes, Annotation, Annotations, FieldError, Meta, NONE, Name, Quantity, Selector, VolumeMode};

/// The namespace and name of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl ClaimKey {
    /// The key of the claim with that namespace and name.
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> ClaimKey {
        ClaimKey { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The phase of a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClaimPhase {
    /// It is not bound yet.
    #[default]
    Pending,
    /// It is bound to a volume.
    Bound,
    /// Its volume no longer exists.
    Lost,
}

impl ClaimPhase {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimPhase::Pending => "Pending",
            ClaimPhase::Bound => "Bound",
            ClaimPhase::Lost => "Lost",
        }
    }

    fn parse(text: &str) -> Option<ClaimPhase> {
        [ClaimPhase::Pending, ClaimPhase::Bound, ClaimPhase::Lost].into_iter().find(|phase| phase.as_str() == text)
    }
}

/// The status of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimStatus {
    /// Its phase.
    pub phase: ClaimPhase,
    /// The access modes of its volume.
    pub modes: Option<AccessModes>,
    /// The capacity of its volume.
    pub capacity: Option<Quantity>,
    /// The VolumeAttributesClass that its volume has.
    pub attributes_class: Option<Name>,
    /// The `Unused` condition.
    pub unused: Condition,
    /// The progress of a resize or an attributes change; most claims have neither.
    pub change: Option<Box<ClaimChange>>,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The object has no condition of that type.
    #[default]
    Absent,
    /// "True".
    True,
    /// "False".
    False,
    /// "Unknown", or any other value.
    Unknown,
}

impl Condition {
    fn parse(text: &str) -> Condition {
        match text {
            "True" => Condition::True,
            "False" => Condition::False,
            _ => Condition::Unknown,
        }
    }
}

/// The progress of a resize or of a change of the VolumeAttributesClass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimChange {
    /// The VolumeAttributesClass that is being applied.
    pub attributes_target: Option<Name>,
    /// The size that is being allocated.
    pub allocated: Option<Quantity>,
    /// The status of the resize; empty when none is in progress.
    pub resize_status: Name,
    /// The `Resizing` condition.
    pub resizing: Condition,
    /// The `FileSystemResizePending` condition.
    pub file_system_pending: Condition,
}

/// The object in its namespace that a claim is populated from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DataSource {
    /// The kind of the object.
    pub kind: Name,
    /// Its name.
    pub name: Name,
}

/// The fields of a PersistentVolumeClaim that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its identity and version.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// Its finalizers.
    pub finalizers: Box<[Name]>,
    /// Whether it has a deletion timestamp. It is bound nevertheless, as upstream does.
    pub deleting: bool,
    /// The UID of its controlling owner: for the claim of an ephemeral volume, the pod.
    pub controller: Option<Name>,
    /// `spec.storageClassName`; use [`Claim::class`] for the class it has.
    pub class_field: Option<Name>,
    /// The volume that it names (`spec.volumeName`), if any.
    pub volume: Option<Name>,
    /// The requested size; `None` counts as zero.
    pub request: Option<Quantity>,
    /// The requested access modes.
    pub modes: AccessModes,
    /// The label selector for volumes; an error when it is invalid.
    pub selector: Option<Box<Result<Selector, String>>>,
    /// File system or block device.
    pub volume_mode: VolumeMode,
    /// The requested VolumeAttributesClass.
    pub attributes_class: Option<Name>,
    /// What it is populated from (`spec.dataSource`), if anything.
    pub source: Option<Box<DataSource>>,
    /// Its status.
    pub status: ClaimStatus,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl Claim {
    /// Decodes a claim. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Claim, FieldError> {
        decode(json)
    }

    /// Its namespace and name.
    pub fn key(&self) -> ClaimKey {
        ClaimKey { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// Its class: the beta annotation if present, else the field; empty when it has none.
    pub fn class(&self) -> &Name {
        let annotation = self.annotations.get(Annotation::BetaStorageClass);
        annotation.or(self.class_field.as_ref()).unwrap_or(&NONE)
    }

    /// Whether it specifies a class, which may be the empty name.
    pub fn has_class(&self) -> bool {
        self.class_field.is_some() || self.annotations.has(Annotation::BetaStorageClass)
    }

    /// Every VolumeAttributesClass that it refers to: requested, current, and being applied.
    pub fn attributes_classes(&self) -> impl Iterator<Item = &Name> {
        let target = self.status.change.as_ref().and_then(|change| change.attributes_target.as_ref());
        let all = self.attributes_class.iter().chain(&self.status.attributes_class).chain(target);
        all.filter(|name| !name.is_empty())
    }

    /// The requested size.
    pub fn requested(&self) -> &Quantity {
        self.request.as_ref().unwrap_or(Quantity::zero())
    }

    /// The requested VolumeAttributesClass; empty when none.
    pub fn attributes(&self) -> &Name {
        self.attributes_class.as_ref().unwrap_or(&NONE)
    }

    /// Whether it was bound once: from then on it is bound or lost.
    pub fn is_bind_completed(&self) -> bool {
        self.annotations.has(Annotation::BindCompleted)
    }

    /// Whether it is a clone of the claim with that name.
    pub fn is_clone_of(&self, name: &Name) -> bool {
        self.source.as_ref().is_some_and(|source| source.kind == "PersistentVolumeClaim" && source.name == *name)
    }

    /// Whether a scheduler requested provisioning for it. The annotation counts even when empty.
    pub fn is_node_selected(&self) -> bool {
        self.annotations.has(Annotation::SelectedNode)
    }

    /// Whether it is to be bound to any matching volume: it names none and was never bound.
    pub fn needs_volume(&self) -> bool {
        self.volume.is_none() && !self.is_bind_completed() && self.field_error.is_none()
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
    access_modes: Option<Vec<Name>>,
    resources: Option<WireRequests>,
    storage_class_name: Option<Name>,
    volume_name: Option<Name>,
    volume_mode: Option<Name>,
    selector: Option<WireSelector>,
    volume_attributes_class_name: Option<Name>,
    data_source: Option<DataSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireRequests {
    requests: Option<WireResources>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    phase: Option<Name>,
    access_modes: Option<Vec<Name>>,
    capacity: Option<WireResources>,
    current_volume_attributes_class_name: Option<Name>,
    modify_volume_status: Option<WireModify>,
    allocated_resources: Option<WireResources>,
    allocated_resource_statuses: Option<WireResizeStatus>,
    conditions: Option<Vec<WireCondition>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireModify {
    target_volume_attributes_class_name: Option<Name>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireResizeStatus {
    storage: Option<Name>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireCondition {
    r#type: Name,
    status: Name,
}

impl WireStatus {
    fn condition(&self, condition_type: &str) -> Condition {
        let conditions = self.conditions.iter().flatten();
        let of_type = conditions.into_iter().find(|condition| condition.r#type == condition_type);
        of_type.map_or(Condition::Absent, |condition| Condition::parse(&condition.status))
    }

    fn change(&mut self, errors: &mut FieldErrors) -> Option<Box<ClaimChange>> {
        let allocated = self.allocated_resources.take().and_then(|resources| resources.storage);
        let change = ClaimChange {
            attributes_target: self.modify_volume_status.take().and_then(|s| s.target_volume_attributes_class_name),
            allocated: errors.quantity("status.allocatedResources.storage", allocated),
            resize_status: self.allocated_resource_statuses.take().and_then(|s| s.storage).unwrap_or_default(),
            resizing: self.condition("Resizing"),
            file_system_pending: self.condition("FileSystemResizePending"),
        };
        (change != ClaimChange::default()).then(|| Box::new(change))
    }
}

impl FromWire for Claim {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Claim {
        let Wire { mut metadata, spec, mut status } = wire;
        let requests = spec.resources.and_then(|resources| resources.requests);
        let field = "spec.resources.requests.storage";
        let request = errors.quantity(field, requests.and_then(|requests| requests.storage));
        let names = spec.access_modes.unwrap_or_default();
        Claim {
            meta: metadata.meta(&mut errors),
            finalizers: metadata.finalizers(),
            deleting: metadata.is_deleting(),
            controller: metadata.controller(),
            annotations: metadata.annotations,
            class_field: spec.storage_class_name,
            volume: spec.volume_name.filter(|name| !name.is_empty()),
            request,
            modes: errors.access_modes("spec.accessModes", &names),
            selector: spec.selector.map(|selector| Box::new(selector.parse())),
            volume_mode: errors.enumeration("spec.volumeMode", spec.volume_mode, VolumeMode::parse),
            attributes_class: spec.volume_attributes_class_name,
            source: spec.data_source.map(Box::new),
            status: ClaimStatus {
                unused: status.condition("Unused"),
                change: status.change(&mut errors),
                phase: errors.enumeration("status.phase", status.phase, ClaimPhase::parse),
                modes: status.access_modes.map(|names| errors.access_modes("status.accessModes", &names)),
                capacity: errors.quantity("status.capacity.storage", status.capacity.and_then(|c| c.storage)),
                attributes_class: status.current_volume_attributes_class_name,
            },
            field_error: errors.into_error(),
        }
    }
}
