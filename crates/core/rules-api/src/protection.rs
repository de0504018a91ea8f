//! Protection finalizers, which protect claims, volumes and attributes classes from deletion while
//! in use, and the proof that an object is unused.

use std::sync::Arc;

use bindery_model::{AttributesClass, Claim, Kind, Meta, Name, Object, ObjectKey, Pod, Volume, VolumePhase, finalizer};
use serde_json::{Map, Value, json};

use crate::edit::name_list;
use crate::{Listing, LiveReads};

/// An object that a finalizer protects from deletion while it is in use.
#[derive(Debug, Clone, Copy)]
pub enum ProtectedObject<'a> {
    /// A claim, protected while pods use it.
    Claim(&'a Claim),
    /// A volume, protected while it is bound.
    Volume(&'a Volume),
    /// An attributes class, protected while claims or volumes refer to it.
    AttributesClass(&'a AttributesClass),
}

impl ProtectedObject<'_> {
    /// The object's metadata.
    pub fn meta(&self) -> &Meta {
        match self {
            ProtectedObject::Claim(claim) => &claim.meta,
            ProtectedObject::Volume(volume) => &volume.meta,
            ProtectedObject::AttributesClass(class) => &class.meta,
        }
    }

    pub(crate) fn key(&self) -> ObjectKey {
        match self {
            ProtectedObject::Claim(claim) => claim.key().into(),
            ProtectedObject::Volume(volume) => ObjectKey::volume(volume.name().clone()),
            ProtectedObject::AttributesClass(class) => {
                ObjectKey::cluster(Kind::AttributesClass, class.meta.name.clone())
            }
        }
    }

    /// The protection finalizer for this kind.
    pub fn finalizer(&self) -> &'static str {
        match self {
            ProtectedObject::Claim(_) => finalizer::PVC_PROTECTION,
            ProtectedObject::Volume(_) => finalizer::PV_PROTECTION,
            ProtectedObject::AttributesClass(_) => finalizer::VAC_PROTECTION,
        }
    }

    fn finalizers(&self) -> &[Name] {
        match self {
            ProtectedObject::Claim(claim) => &claim.finalizers,
            ProtectedObject::Volume(volume) => &volume.finalizers,
            ProtectedObject::AttributesClass(class) => &class.finalizers,
        }
    }

    fn is_deleting(&self) -> bool {
        match self {
            ProtectedObject::Claim(claim) => claim.deleting,
            ProtectedObject::Volume(volume) => volume.deleting,
            ProtectedObject::AttributesClass(class) => class.deleting,
        }
    }

    fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|name| name == self.finalizer())
    }

    /// Whether the object is Terminating and still has the protection finalizer.
    pub fn is_deleting_with_finalizer(&self) -> bool {
        self.is_deleting() && self.has_finalizer()
    }

    /// Whether the object needs the protection finalizer and does not have it.
    pub fn is_missing_finalizer(&self) -> bool {
        !self.is_deleting() && !self.has_finalizer()
    }
}

/// Adds or removes a protection finalizer. Other finalizers are unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionEdit {
    finalizers: Box<[Name]>,
}

impl ProtectionEdit {
    pub(crate) fn add_finalizer(object: ProtectedObject<'_>) -> ProtectionEdit {
        let finalizer = Name::new_static(object.finalizer());
        let others = object.finalizers().iter().filter(|name| **name != finalizer).cloned();
        ProtectionEdit { finalizers: others.chain([finalizer.clone()]).collect() }
    }

    pub(crate) fn remove_finalizer(object: ProtectedObject<'_>, proof: &UnusedProof) -> ProtectionEdit {
        assert_eq!(*object.meta(), proof.0, "the proof must be about this object in this version");
        let others = object.finalizers().iter().filter(|name| *name != object.finalizer()).cloned();
        ProtectionEdit { finalizers: others.collect() }
    }

    /// The complete list of finalizers that the object will have.
    pub fn finalizers(&self) -> &[Name] {
        &self.finalizers
    }

    pub(crate) fn patch(&self) -> Map<String, Value> {
        Map::from_iter([("metadata".into(), json!({"finalizers": name_list(&self.finalizers)}))])
    }
}

/// Proof that an object is unused in the exact version that the finalizer's removal is conditional
/// on. References from other objects were listed live after the decision; the object's own fields
/// are covered by the write's precondition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedProof(Meta);

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotUnused {
    /// These objects must be listed live first.
    NeedsList(Listing),
    /// These objects use it.
    UsedBy(Vec<ObjectKey>),
}

impl UnusedProof {
    /// Proves that none of the pods listed live uses the claim.
    pub fn of_claim(claim: &Claim, live_reads: &LiveReads) -> Result<UnusedProof, NotUnused> {
        let listing = Listing { kind: Kind::Pod, namespace: claim.meta.namespace.clone() };
        Self::find(&claim.meta, live_reads, listing, |object| {
            object.get::<Pod>().is_some_and(|pod| pod.protects(claim))
        })
    }

    /// Proves that the volume is not bound; otherwise returns the claim that it is bound to.
    pub fn of_volume(volume: &Volume) -> Result<UnusedProof, Vec<ObjectKey>> {
        if volume.phase != VolumePhase::Bound {
            return Ok(UnusedProof(volume.meta.clone()));
        }
        Err(volume.claim_ref.iter().map(|claim| claim.key.clone().into()).collect())
    }

    /// Proves that none of the claims and volumes listed live refers to the class.
    pub fn of_attributes_class(class: &AttributesClass, live_reads: &LiveReads) -> Result<UnusedProof, NotUnused> {
        let refers = |object: &Object| {
            let of_claim = |claim: &Arc<Claim>| claim.attributes_classes().any(|name| *name == class.meta.name);
            object.get::<Claim>().is_some_and(of_claim)
                || object.get::<Volume>().is_some_and(|volume| *volume.attributes() == class.meta.name)
        };
        for kind in [Kind::Claim, Kind::Volume] {
            Self::find(&class.meta, live_reads, Listing { kind, namespace: Name::default() }, refers)?;
        }
        Ok(UnusedProof(class.meta.clone()))
    }

    fn find(
        meta: &Meta,
        live_reads: &LiveReads,
        listing: Listing,
        uses: impl Fn(&Object) -> bool,
    ) -> Result<UnusedProof, NotUnused> {
        let Some(listed) = live_reads.listed(&listing) else { return Err(NotUnused::NeedsList(listing)) };
        // An object that could not be parsed may be a user: when in doubt, the finalizer stays.
        let users: Vec<ObjectKey> =
            listed.iter().filter(|object| object.field_error().is_some() || uses(object)).map(Object::key).collect();
        if users.is_empty() { Ok(UnusedProof(meta.clone())) } else { Err(NotUnused::UsedBy(users)) }
    }
}

/// Formats a list of this many users: the first few, and the number of others. It does not
/// iterate over all of them: there may be as many as there are objects.
pub fn users<'k>(keys: impl IntoIterator<Item = &'k ObjectKey>, count: usize) -> String {
    const SHOWN: usize = 5;
    let shown = keys.into_iter().take(SHOWN).map(ObjectKey::to_string).collect::<Vec<_>>().join(", ");
    match count.saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
