//! Edits: the change that a write makes. They are typed, so that the engine can apply them to its
//! cache before the answer arrives, and so that a write touches nothing else.

use bindery_model::{
    AccessModes, Annotation, Annotations, Attempt, Claim, ClaimPhase, ClaimRef, Name, Pod, Quantity, Record, Volume,
    VolumePhase,
};
use serde_json::{Map, Value, json};

use crate::{ClaimReport, ProtectionEdit};

/// What a write changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A claim's metadata and spec.
    Claim(ClaimEdit),
    /// The part of a claim's status that the binder writes.
    ClaimStatus(ClaimStatusEdit),
    /// The part of a claim's status that the lifecycle controllers write.
    ClaimReport(ClaimReport),
    /// A volume's metadata and spec.
    Volume(VolumeEdit),
    /// A volume's status.
    VolumeStatus(VolumeStatusEdit),
    /// The part of a pod's status that the scheduler writes.
    PodStatus(PodStatusEdit),
    /// The protection finalizer of a claim, a volume or an attributes class.
    Protection(ProtectionEdit),
    /// A provisioning record.
    Record(RecordEdit),
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// A JSON merge patch: lists are replaced.
    Merge,
    /// A strategic merge patch: lists with a merge key are merged.
    Strategic,
}

/// Annotations to set, or to remove if the value is `None`.
pub(crate) type AnnotationEdits = Vec<(Annotation, Option<Name>)>;

/// Changes of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimEdit {
    /// The volume to set in `spec.volumeName`.
    pub volume: Option<Name>,
    /// The class to set in `spec.storageClassName`.
    pub class: Option<Name>,
    /// Annotations to set or remove.
    pub annotations: AnnotationEdits,
    /// The complete list of finalizers.
    pub finalizers: Option<Box<[Name]>>,
}

/// Changes of a claim's status. Every field is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimStatusEdit {
    /// The phase.
    pub phase: ClaimPhase,
    /// The access modes; `None` removes them.
    pub modes: Option<AccessModes>,
    /// The capacity; `None` removes it.
    pub capacity: Option<Quantity>,
    /// The current attributes class; `None` removes it.
    pub attributes_class: Option<Name>,
}

/// A change of a volume's claimRef.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefEdit {
    /// Refer to this claim at this resourceVersion.
    Set(ClaimRef, u64),
    /// Keep the claim's name and clear its UID, so that any claim of that name can bind.
    ClearUid,
    /// Remove the claimRef.
    Clear,
}

/// Changes of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeEdit {
    /// The claimRef.
    pub claim_ref: Option<RefEdit>,
    /// Annotations to set or remove.
    pub annotations: AnnotationEdits,
    /// The complete list of finalizers.
    pub finalizers: Option<Box<[Name]>>,
    /// The capacity.
    pub capacity: Option<Quantity>,
}

/// Changes of a volume's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeStatusEdit {
    /// The phase.
    pub phase: VolumePhase,
    /// The message.
    pub message: Name,
}

impl Edit {
    /// The subresource to patch, if any.
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Edit::Claim(_) | Edit::Volume(_) | Edit::Protection(_) | Edit::Record(_) => None,
            Edit::ClaimStatus(_) | Edit::ClaimReport(_) | Edit::VolumeStatus(_) | Edit::PodStatus(_) => Some("status"),
        }
    }

    /// The type of the patch.
    pub fn patch_type(&self) -> PatchType {
        match self {
            Edit::ClaimReport(_) | Edit::PodStatus(_) => PatchType::Strategic,
            Edit::Claim(_)
            | Edit::ClaimStatus(_)
            | Edit::Volume(_)
            | Edit::VolumeStatus(_)
            | Edit::Protection(_)
            | Edit::Record(_) => PatchType::Merge,
        }
    }

    /// The patch without its preconditions. `now` (RFC 3339) is the time of the change.
    pub fn patch(&self, now: &str) -> Map<String, Value> {
        match self {
            Edit::Claim(edit) => edit.patch(),
            Edit::ClaimStatus(edit) => status_patch(edit.patch()),
            Edit::ClaimReport(report) => report.patch(now),
            Edit::Volume(edit) => edit.patch(),
            Edit::VolumeStatus(edit) => status_patch(edit.patch()),
            Edit::PodStatus(edit) => status_patch(edit.patch(now)),
            Edit::Protection(edit) => edit.patch(),
            Edit::Record(edit) => edit.patch(now),
        }
    }
}

fn status_patch(status: Value) -> Map<String, Value> {
    Map::from_iter([("status".to_owned(), status)])
}

/// An empty string means that the field is absent.
fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

pub(crate) fn metadata(annotations: &AnnotationEdits) -> Map<String, Value> {
    let mut metadata = Map::new();
    if !annotations.is_empty() {
        let value = |value: &Option<Name>| value.as_ref().map_or(Value::Null, |value| value.as_str().into());
        let edits = annotations.iter().map(|(annotation, edit)| (annotation.key().to_owned(), value(edit)));
        metadata.insert("annotations".into(), edits.collect::<Map<_, _>>().into());
    }
    metadata
}

pub(crate) fn apply_annotations(annotations: &mut Annotations, edits: &AnnotationEdits) {
    for (annotation, edit) in edits {
        match edit {
            Some(value) => annotations.set(*annotation, value.clone()),
            None => annotations.remove(*annotation),
        }
    }
}

impl ClaimEdit {
    /// Applies the edit to a claim.
    pub fn apply(&self, claim: &mut Claim) {
        if let Some(volume) = &self.volume {
            claim.volume = Some(volume.clone());
        }
        if let Some(class) = &self.class {
            claim.class_field = Some(class.clone());
        }
        apply_annotations(&mut claim.annotations, &self.annotations);
        if let Some(finalizers) = &self.finalizers {
            claim.finalizers = finalizers.clone();
        }
    }

    fn patch(&self) -> Map<String, Value> {
        let mut spec = Map::new();
        if let Some(volume) = &self.volume {
            spec.insert("volumeName".into(), volume.as_str().into());
        }
        if let Some(class) = &self.class {
            spec.insert("storageClassName".into(), class.as_str().into());
        }
        let mut metadata = metadata(&self.annotations);
        if let Some(finalizers) = &self.finalizers {
            metadata.insert("finalizers".into(), name_list(finalizers));
        }
        let mut patch = Map::from_iter([("metadata".into(), metadata.into())]);
        if !spec.is_empty() {
            patch.insert("spec".into(), spec.into());
        }
        patch
    }
}

impl ClaimStatusEdit {
    /// Applies the edit to a claim.
    pub fn apply(&self, claim: &mut Claim) {
        claim.status.phase = self.phase;
        claim.status.modes = self.modes;
        claim.status.capacity = self.capacity.clone();
        claim.status.attributes_class = self.attributes_class.clone();
    }

    fn patch(&self) -> Value {
        let modes = |modes: &AccessModes| modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>();
        json!({
            "phase": self.phase.as_str(),
            "accessModes": self.modes.as_ref().map(modes),
            "capacity": self.capacity.as_ref().map(|capacity| json!({"storage": capacity.as_str()})),
            "currentVolumeAttributesClassName": self.attributes_class.as_ref().map(|class| class.as_str()),
        })
    }
}

impl VolumeEdit {
    /// Applies the edit to a volume.
    pub fn apply(&self, volume: &mut Volume) {
        match &self.claim_ref {
            None => {}
            Some(RefEdit::Set(claim, _)) => volume.claim_ref = Some(claim.clone()),
            Some(RefEdit::Clear) => volume.claim_ref = None,
            Some(RefEdit::ClearUid) => {
                if let Some(claim) = &mut volume.claim_ref {
                    claim.uid = Name::default();
                }
            }
        }
        apply_annotations(&mut volume.annotations, &self.annotations);
        if let Some(finalizers) = &self.finalizers {
            volume.finalizers = finalizers.clone();
        }
        if let Some(capacity) = &self.capacity {
            volume.capacity = Some(capacity.clone());
        }
    }

    fn patch(&self) -> Map<String, Value> {
        let mut metadata = metadata(&self.annotations);
        if let Some(finalizers) = &self.finalizers {
            metadata.insert("finalizers".into(), name_list(finalizers));
        }
        let mut spec = Map::new();
        if let Some(claim_ref) = &self.claim_ref {
            spec.insert("claimRef".into(), claim_ref.patch());
        }
        if let Some(capacity) = &self.capacity {
            spec.insert("capacity".into(), json!({"storage": capacity.as_str()}));
        }
        let mut patch = Map::from_iter([("metadata".into(), metadata.into())]);
        if !spec.is_empty() {
            patch.insert("spec".into(), spec.into());
        }
        patch
    }
}

/// Changes of a provisioning record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordEdit {
    /// Another attempt begins. The outcome of the earlier ones is unknown.
    Begin(Attempt),
    /// It is certain what the storage has created: the record is removed.
    Remove,
}

impl RecordEdit {
    /// Applies the edit to a record.
    pub fn apply(&self, record: &mut Record) {
        match self {
            RecordEdit::Begin(attempt) => (record.attempt, record.outcome_unknown) = (attempt.clone(), true),
            RecordEdit::Remove => record.deleting = true,
        }
    }

    fn patch(&self, now: &str) -> Map<String, Value> {
        let patch = match self {
            RecordEdit::Begin(attempt) => {
                [("attempt".to_owned(), json!(attempt)), ("outcomeUnknown".to_owned(), true.into())].to_vec()
            }
            RecordEdit::Remove => [("metadata".to_owned(), json!({"deletionTimestamp": now}))].to_vec(),
        };
        patch.into_iter().collect()
    }
}

impl RefEdit {
    fn patch(&self) -> Value {
        match self {
            RefEdit::Clear => Value::Null,
            RefEdit::ClearUid => json!({"uid": null}),
            RefEdit::Set(claim, version) => json!({
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": claim.key.namespace.as_str(),
                "name": claim.key.name.as_str(),
                "uid": claim.uid.as_str(),
                "resourceVersion": version.to_string(),
            }),
        }
    }
}

/// Names as a JSON list. An empty list means that the field is absent.
pub(crate) fn name_list(names: &[Name]) -> Value {
    let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    if names.is_empty() { Value::Null } else { names.into() }
}

/// Changes of a pod's status by the scheduler. Fields that are `None` are not written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodStatusEdit {
    /// The nominated node; empty for none.
    pub nominated: Option<Name>,
    /// The message of `PodScheduled=False`: why the pod cannot be scheduled.
    pub unschedulable: Option<Name>,
}

impl PodStatusEdit {
    /// Applies the edit to a pod.
    pub fn apply(&self, pod: &mut Pod) {
        if let Some(node) = &self.nominated {
            pod.scheduling.nominated_node = node.clone();
        }
        if let Some(why) = &self.unschedulable {
            pod.scheduling.unschedulable = Some(why.clone());
        }
    }

    fn patch(&self, now: &str) -> Value {
        let mut status = Map::new();
        if let Some(node) = &self.nominated {
            status.insert("nominatedNodeName".into(), or_null(node));
        }
        if let Some(why) = &self.unschedulable {
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": why.as_str(),
                "lastProbeTime": null,
                "lastTransitionTime": now,
            });
            status.insert("conditions".into(), json!([condition]));
        }
        status.into()
    }
}

impl VolumeStatusEdit {
    /// Applies the edit to a volume.
    pub fn apply(&self, volume: &mut Volume) {
        volume.phase = self.phase;
        volume.message = self.message.clone();
    }

    fn patch(&self) -> Value {
        json!({"phase": self.phase.as_str(), "message": or_null(&self.message)})
    }
}
