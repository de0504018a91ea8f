//! CSI migration: annotations and finalizers that say who is in charge of a volume.

use bindery_model::migration::{IN_TREE_PREFIX, driver_of};
use bindery_model::{Annotation, Annotations, Claim, Name, ReclaimPolicy, Volume, finalizer};
use bindery_rules_api::{ClaimEdit, Edit, VolumeEdit, Write};

use crate::rules;

type AnnotationEdit = (Annotation, Option<Name>);

/// Brings a claim's annotation in line with who provisions for it.
pub(crate) fn claim(claim: &Claim) -> Option<Write> {
    let annotations = &claim.annotations;
    let provisioner = annotations
        .get(Annotation::StorageProvisioner)
        .or_else(|| annotations.get(Annotation::BetaStorageProvisioner))?;
    let edit = ClaimEdit { annotations: vec![migrated_to(annotations, provisioner)?], ..ClaimEdit::default() };
    Some(Write::claim(&rules::CLAIM_MIGRATION, claim, Edit::Claim(edit)))
}

/// Brings a volume's annotation and finalizers in line with who provisioned it.
pub(crate) fn volume(volume: &Volume) -> Option<Write> {
    let provisioner = volume.annotations.get(Annotation::ProvisionedBy)?;
    let edit = VolumeEdit {
        annotations: migrated_to(&volume.annotations, provisioner).into_iter().collect(),
        finalizers: finalizers(volume, provisioner),
        ..VolumeEdit::default()
    };
    (edit != VolumeEdit::default()).then(|| Write::volume(&rules::VOLUME_MIGRATION, volume, Edit::Volume(edit)))
}

/// The change that the migrated-to annotation needs, if any.
pub(crate) fn migrated_to(annotations: &Annotations, provisioner: &str) -> Option<AnnotationEdit> {
    let current = annotations.get(Annotation::MigratedTo).map(Name::as_str).unwrap_or_default();
    match driver_of(provisioner) {
        Some(driver) if current != driver => Some((Annotation::MigratedTo, Some(Name::new_static(driver)))),
        None if !current.is_empty() => Some((Annotation::MigratedTo, None)),
        Some(_) | None => None,
    }
}

/// The finalizers that a volume is to have, where they differ from those it has. The binder guards what an in-tree plugin made
/// and what is to be deleted; a volume that has moved to CSI is guarded by its driver's provisioner.
fn finalizers(volume: &Volume, provisioner: &str) -> Option<Box<[Name]>> {
    let mut wanted: Vec<Name> = volume.finalizers.to_vec();
    if driver_of(provisioner).is_some() {
        wanted.retain(|name| name != finalizer::PV_CONTROLLER);
    } else if provisioner.starts_with(IN_TREE_PREFIX) {
        match volume.policy {
            // An API server refuses new finalizers on what is being deleted.
            ReclaimPolicy::Delete
                if !volume.deleting && !wanted.iter().any(|name| name == finalizer::PV_CONTROLLER) =>
            {
                wanted.push(Name::new_static(finalizer::PV_CONTROLLER));
            }
            ReclaimPolicy::Retain | ReclaimPolicy::Recycle => wanted.retain(|name| name != finalizer::PV_CONTROLLER),
            ReclaimPolicy::Delete | ReclaimPolicy::Unknown(_) => {}
        }
        wanted.retain(|name| name != finalizer::EXTERNAL_PROVISIONER);
    }
    (*wanted != *volume.finalizers).then(|| wanted.into())
}
