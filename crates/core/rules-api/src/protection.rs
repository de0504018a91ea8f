//! Protection: the finalizers that keep claims, volumes and attributes classes from going while they are in use, and the proof
//! that they are not.

use std::sync::Arc;

use bindery_model::{AttributesClass, Claim, Kind, Meta, Name, Object, ObjectKey, Pod, Volume, VolumePhase, finalizer};
use serde_json::{Map, Value, json};

use crate::edit::list_of;
use crate::{Listing, LiveReads};

/// Something that is kept from going while it is in use.
#[derive(Debug, Clone, Copy)]
pub enum ProtectedObject<'a> {
    /// A claim, while pods use it.
    Claim(&'a Claim),
    /// A volume, while it is bound.
    Volume(&'a Volume),
    /// An attributes class, while claims or volumes refer to it.
    AttributesClass(&'a AttributesClass),
}

impl ProtectedObject<'_> {
    /// Who it is.
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

    /// The finalizer that guards it.
    pub fn guard(&self) -> &'static str {
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
        self.finalizers().iter().any(|name| name == self.guard())
    }

    /// Whether somebody deleted it, and only its users keep it.
    pub fn is_deleting_with_finalizer(&self) -> bool {
        self.is_deleting() && self.has_finalizer()
    }

    /// Whether it is to be guarded, and is not.
    pub fn is_missing_finalizer(&self) -> bool {
        !self.is_deleting() && !self.has_finalizer()
    }
}

/// Puts a protection finalizer on an object, or takes it off. No other finalizer is touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionEdit {
    finalizers: Box<[Name]>,
}

impl ProtectionEdit {
    pub(crate) fn guard(object: ProtectedObject<'_>) -> ProtectionEdit {
        let guard = Name::new_static(object.guard());
        let others = object.finalizers().iter().filter(|name| **name != guard).cloned();
        ProtectionEdit { finalizers: others.chain([guard.clone()]).collect() }
    }

    pub(crate) fn remove_finalizer(object: ProtectedObject<'_>, proof: &UnusedProof) -> ProtectionEdit {
        assert_eq!(*object.meta(), proof.0, "a proof is about one state of one object");
        let others = object.finalizers().iter().filter(|name| *name != object.guard()).cloned();
        ProtectionEdit { finalizers: others.collect() }
    }

    /// All finalizers that the object is to have.
    pub fn finalizers(&self) -> &[Name] {
        &self.finalizers
    }

    pub(crate) fn patch(&self) -> Map<String, Value> {
        Map::from_iter([("metadata".into(), json!({"finalizers": list_of(&self.finalizers)}))])
    }
}

/// A token that nothing uses an object, in the very state that the write which lets it go is conditional on. What others say of
/// it was listed live after the decision; what it says itself is made sure of by the condition of that write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedProof(Meta);

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotUnused {
    /// These have to be listed first.
    Look(Listing),
    /// These use it.
    UsedBy(Vec<ObjectKey>),
}

impl UnusedProof {
    /// Looks at the pods that were listed live: none of them holds the claim.
    pub fn of_claim(claim: &Claim, live_reads: &LiveReads) -> Result<UnusedProof, NotUnused> {
        let listing = Listing { kind: Kind::Pod, namespace: claim.meta.namespace.clone() };
        Self::find(&claim.meta, live_reads, listing, |object| {
            object.get::<Pod>().is_some_and(|pod| pod.protects(claim))
        })
    }

    /// Looks at the volume itself: it is not bound. Else says to which claim.
    pub fn of_volume(volume: &Volume) -> Result<UnusedProof, Vec<ObjectKey>> {
        if volume.phase != VolumePhase::Bound {
            return Ok(UnusedProof(volume.meta.clone()));
        }
        Err(volume.claim_ref.iter().map(|claim| claim.key.clone().into()).collect())
    }

    /// Looks at the claims and volumes that were listed live: none of them refers to the class.
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
        let Some(listed) = live_reads.listed(&listing) else { return Err(NotUnused::Look(listing)) };
        // An object that could not be understood may be a user: when in doubt, nothing goes.
        let users: Vec<ObjectKey> =
            listed.iter().filter(|object| object.field_error().is_some() || uses(object)).map(Object::key).collect();
        if users.is_empty() { Ok(UnusedProof(meta.clone())) } else { Err(NotUnused::UsedBy(users)) }
    }
}

/// Users in words: the first few, and how many more there are.
pub fn users(keys: &[ObjectKey]) -> String {
    const SHOWN: usize = 5;
    let shown = keys.iter().take(SHOWN).map(ObjectKey::to_string).collect::<Vec<_>>().join(", ");
    match keys.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
