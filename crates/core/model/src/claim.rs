//! A claim: what somebody asks of storage (PersistentVolumeClaim).

use std::fmt;

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, WireResources, decode};
use crate::selector::WireSelector;
use crate::{AccessModes, Annotation, Annotations, FieldError, Meta, NONE, Name, Quantity, Selector, VolumeMode};

/// Where a claim lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl ClaimKey {
    /// The key of a claim of that name in a namespace.
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> ClaimKey {
        ClaimKey { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClaimPhase {
    /// It has no volume yet.
    #[default]
    Pending,
    /// It has one.
    Bound,
    /// It had one.
    Lost,
}

impl ClaimPhase {
    /// The name on the wire.
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

/// What is said of a claim in its status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimStatus {
    /// How far it has come.
    pub phase: ClaimPhase,
    /// The access modes of its volume.
    pub modes: Option<AccessModes>,
    /// How much it got.
    pub capacity: Option<Quantity>,
    /// The attributes class that its volume has now.
    pub attributes_class: Option<Name>,
    /// What the `Unused` condition says.
    pub unused: Condition,
    /// What is said while it grows or changes its attributes; most claims do neither.
    pub change: Option<Box<ClaimChange>>,
}

/// What a condition says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// There is none of that type.
    #[default]
    Absent,
    /// It holds.
    True,
    /// It does not.
    False,
    /// NoObserver knows.
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

/// What is said of a claim that grows, or that changes its attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimChange {
    /// The attributes class that it is to get.
    pub attributes_target: Option<Name>,
    /// The size that is being made for it.
    pub allocated: Option<Quantity>,
    /// How far that has come; empty when nobody makes it grow.
    pub resize_status: Name,
    /// What the `Resizing` condition says.
    pub resizing: Condition,
    /// What the `FileSystemResizePending` condition says.
    pub file_system_pending: Condition,
}

/// What a claim is to be filled from: an object of its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DataSource {
    /// The kind of the object.
    pub kind: Name,
    /// Its name.
    pub name: Name,
}

/// A claim, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Who it is.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// What holds it back from being deleted.
    pub finalizers: Box<[Name]>,
    /// Whether somebody deleted it. Upstream binds it all the same, and so do we.
    pub deleting: bool,
    /// The UID of whoever controls it: of the pod that an ephemeral volume's claim was made for.
    pub controller: Option<Name>,
    /// `spec.storageClassName`; use [`Claim::class`] for the class it has.
    pub class_field: Option<Name>,
    /// The volume that it names (`spec.volumeName`), if any.
    pub volume: Option<Name>,
    /// How much it asks for; `None` counts as nothing.
    pub request: Option<Quantity>,
    /// How it wants to be mounted.
    pub modes: AccessModes,
    /// Which volumes it will have; why that cannot be known, when the selector makes no sense.
    pub selector: Option<Box<Result<Selector, String>>>,
    /// File system or block device.
    pub volume_mode: VolumeMode,
    /// The attributes class that it asks for.
    pub attributes_class: Option<Name>,
    /// What it is to be filled from (`spec.dataSource`), if anything.
    pub source: Option<Box<DataSource>>,
    /// What is said of it.
    pub status: ClaimStatus,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Claim {
    /// Decodes a claim. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Claim, FieldError> {
        decode(json)
    }

    /// Where it lives.
    pub fn key(&self) -> ClaimKey {
        ClaimKey { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// Its class: the old annotation where the key is present, else the field; empty when it has none.
    pub fn class(&self) -> &Name {
        let annotation = self.annotations.get(Annotation::BetaStorageClass);
        annotation.or(self.class_field.as_ref()).unwrap_or(&NONE)
    }

    /// Whether it says anything about its class, be it that it wants none.
    pub fn has_class(&self) -> bool {
        self.class_field.is_some() || self.annotations.has(Annotation::BetaStorageClass)
    }

    /// Every attributes class that it has to do with: the one it asks for, has, or is to get.
    pub fn attributes_classes(&self) -> impl Iterator<Item = &Name> {
        let target = self.status.change.as_ref().and_then(|change| change.attributes_target.as_ref());
        let all = self.attributes_class.iter().chain(&self.status.attributes_class).chain(target);
        all.filter(|name| !name.is_empty())
    }

    /// How much it asks for.
    pub fn requested(&self) -> &Quantity {
        self.request.as_ref().unwrap_or(Quantity::zero())
    }

    /// The attributes class that it asks for; empty when none.
    pub fn attributes(&self) -> &Name {
        self.attributes_class.as_ref().unwrap_or(&NONE)
    }

    /// Whether its binding was completed once: from then on it is bound, or lost.
    pub fn is_bind_completed(&self) -> bool {
        self.annotations.has(Annotation::BindCompleted)
    }

    /// Whether it is to be filled from another claim of that name.
    pub fn is_clone_of(&self, name: &Name) -> bool {
        self.source.as_ref().is_some_and(|source| source.kind == "PersistentVolumeClaim" && source.name == *name)
    }

    /// Whether a scheduler asks that a volume be provisioned for it. Presence counts, even of an empty name.
    pub fn is_node_selected(&self) -> bool {
        self.annotations.has(Annotation::SelectedNode)
    }

    /// Whether it still looks for any volume that fits.
    pub fn is_looking(&self) -> bool {
        self.volume.is_none() && !self.is_bind_completed() && self.flaw.is_none()
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

    fn change(&mut self, flaws: &mut FieldErrors) -> Option<Box<ClaimChange>> {
        let allocated = self.allocated_resources.take().and_then(|resources| resources.storage);
        let change = ClaimChange {
            attributes_target: self.modify_volume_status.take().and_then(|s| s.target_volume_attributes_class_name),
            allocated: flaws.quantity("status.allocatedResources.storage", allocated),
            resize_status: self.allocated_resource_statuses.take().and_then(|s| s.storage).unwrap_or_default(),
            resizing: self.condition("Resizing"),
            file_system_pending: self.condition("FileSystemResizePending"),
        };
        (change != ClaimChange::default()).then(|| Box::new(change))
    }
}

impl Lean for Claim {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> Claim {
        let Wire { mut metadata, spec, mut status } = wire;
        let requests = spec.resources.and_then(|resources| resources.requests);
        let field = "spec.resources.requests.storage";
        let request = flaws.quantity(field, requests.and_then(|requests| requests.storage));
        let names = spec.access_modes.unwrap_or_default();
        Claim {
            meta: metadata.meta(&mut flaws),
            finalizers: metadata.finalizers(),
            deleting: metadata.is_deleting(),
            controller: metadata.controller(),
            annotations: metadata.annotations,
            class_field: spec.storage_class_name,
            volume: spec.volume_name.filter(|name| !name.is_empty()),
            request,
            modes: flaws.access_modes("spec.accessModes", &names),
            selector: spec.selector.map(|selector| Box::new(selector.parse())),
            volume_mode: flaws.word("spec.volumeMode", spec.volume_mode, VolumeMode::parse),
            attributes_class: spec.volume_attributes_class_name,
            source: spec.data_source.map(Box::new),
            status: ClaimStatus {
                unused: status.condition("Unused"),
                change: status.change(&mut flaws),
                phase: flaws.word("status.phase", status.phase, ClaimPhase::parse),
                modes: status.access_modes.map(|names| flaws.access_modes("status.accessModes", &names)),
                capacity: flaws.quantity("status.capacity.storage", status.capacity.and_then(|c| c.storage)),
                attributes_class: status.current_volume_attributes_class_name,
            },
            flaw: flaws.into_flaw(),
        }
    }
}
