//! Edits: what a write changes of an object. Typed, so that the engine can foresee the outcome, and so that nothing else is touched.

use bindery_model::{
    AccessModes, Annotation, Annotations, Claim, ClaimPhase, ClaimRef, Name, Pod, Quantity, Volume, VolumePhase,
};
use serde_json::{Map, Value, json};

use crate::{ClaimReport, ProtectionEdit};

/// What a write changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A claim's annotations and spec.
    Claim(ClaimEdit),
    /// A claim's status: what the binder says in it.
    ClaimStatus(ClaimStatusEdit),
    /// A claim's status: what the controllers beside the binder say in it.
    ClaimReport(ClaimReport),
    /// A volume's metadata and spec.
    Volume(VolumeEdit),
    /// A volume's status.
    VolumeStatus(VolumeStatusEdit),
    /// A pod's status: what a scheduler says in it.
    PodStatus(PodStatusEdit),
    /// The finalizer that keeps a claim, a volume or an attributes class from going while it is in use.
    Protection(ProtectionEdit),
}

/// How a patch is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// A JSON merge patch: a list is replaced as a whole.
    Merge,
    /// A strategic merge patch: a list whose entries have a key is merged by that key.
    Strategic,
}

/// Annotations to set, or to remove where there is no value.
pub(crate) type AnnotationEdits = Vec<(Annotation, Option<Name>)>;

/// Changes of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimEdit {
    /// The volume that it is to name.
    pub volume: Option<Name>,
    /// The class that it is to have.
    pub class: Option<Name>,
    /// Annotations to set or remove.
    pub annotations: AnnotationEdits,
    /// All finalizers that it is to have.
    pub finalizers: Option<Box<[Name]>>,
}

/// Changes of a claim's status: all of it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimStatusEdit {
    /// How far it has come.
    pub phase: ClaimPhase,
    /// The access modes it got; `None` removes them.
    pub modes: Option<AccessModes>,
    /// How much it got; `None` removes it.
    pub capacity: Option<Quantity>,
    /// The attributes class it got; `None` removes it.
    pub attributes_class: Option<Name>,
}

/// What becomes of a volume's reference to its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefEdit {
    /// It refers to this claim, in the state of this version.
    Set(ClaimRef, u64),
    /// It keeps the name, and is for any claim of that name.
    ClearUid,
    /// It refers to no claim.
    Clear,
}

/// Changes of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeEdit {
    /// Which claim it is for.
    pub claim_ref: Option<RefEdit>,
    /// Annotations to set or remove.
    pub annotations: AnnotationEdits,
    /// All finalizers that it is to have.
    pub finalizers: Option<Box<[Name]>>,
    /// How much it is to hold.
    pub capacity: Option<Quantity>,
}

/// Changes of a volume's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeStatusEdit {
    /// How it stands.
    pub phase: VolumePhase,
    /// Why.
    pub message: Name,
}

impl Edit {
    /// The subresource that is written to, if not the object itself.
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Edit::Claim(_) | Edit::Volume(_) | Edit::Protection(_) => None,
            Edit::ClaimStatus(_) | Edit::ClaimReport(_) | Edit::VolumeStatus(_) | Edit::PodStatus(_) => Some("status"),
        }
    }

    /// How the patch is to be understood.
    pub fn patch_type(&self) -> PatchType {
        match self {
            Edit::ClaimReport(_) | Edit::PodStatus(_) => PatchType::Strategic,
            Edit::Claim(_) | Edit::ClaimStatus(_) | Edit::Volume(_) | Edit::VolumeStatus(_) | Edit::Protection(_) => {
                PatchType::Merge
            }
        }
    }

    /// The edit as a patch, without the precondition. What it says happens at `now` (RFC 3339).
    pub fn patch(&self, now: &str) -> Map<String, Value> {
        match self {
            Edit::Claim(edit) => edit.patch(),
            Edit::ClaimStatus(edit) => of_status(edit.patch()),
            Edit::ClaimReport(report) => report.patch(now),
            Edit::Volume(edit) => edit.patch(),
            Edit::VolumeStatus(edit) => of_status(edit.patch()),
            Edit::PodStatus(edit) => of_status(edit.patch(now)),
            Edit::Protection(edit) => edit.patch(),
        }
    }
}

fn of_status(status: Value) -> Map<String, Value> {
    Map::from_iter([("status".to_owned(), status)])
}

/// An empty text is an absent field.
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
    /// Makes the changes on a claim.
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
            metadata.insert("finalizers".into(), list_of(finalizers));
        }
        let mut patch = Map::from_iter([("metadata".into(), metadata.into())]);
        if !spec.is_empty() {
            patch.insert("spec".into(), spec.into());
        }
        patch
    }
}

impl ClaimStatusEdit {
    /// Makes the changes on a claim.
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
    /// Makes the changes on a volume.
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
            metadata.insert("finalizers".into(), list_of(finalizers));
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

/// Names as a list; none is an absent field.
pub(crate) fn list_of(names: &[Name]) -> Value {
    let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    if names.is_empty() { Value::Null } else { names.into() }
}

/// What a scheduler says of a pod. What is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodStatusEdit {
    /// The node that is meant for it; empty for none.
    pub nominated: Option<Name>,
    /// Why no node will do.
    pub unschedulable: Option<Name>,
}

impl PodStatusEdit {
    /// Makes the changes on a pod.
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
    /// Makes the changes on a volume.
    pub fn apply(&self, volume: &mut Volume) {
        volume.phase = self.phase;
        volume.message = self.message.clone();
    }

    fn patch(&self) -> Value {
        json!({"phase": self.phase.as_str(), "message": or_null(&self.message)})
    }
}
