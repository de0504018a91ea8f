//! CSI migration: annotations and finalizers that show whether a CSI driver is responsible.

use bindery_model::migration::{IN_TREE_PREFIX, driver_of};
use bindery_model::{Annotation, Annotations, Claim, Name, ReclaimPolicy, Volume, finalizer};
use bindery_rules_api::{ClaimEdit, Edit, VolumeEdit, Write};

use crate::rules;

type AnnotationEdit = (Annotation, Option<Name>);

/// Updates a claim's migrated-to annotation for its provisioner.
pub(crate) fn claim(claim: &Claim) -> Option<Write> {
    let annotations = &claim.annotations;
    let provisioner = annotations
        .get(Annotation::StorageProvisioner)
        .or_else(|| annotations.get(Annotation::BetaStorageProvisioner))?;
    let edit = ClaimEdit { annotations: vec![migrated_to(annotations, provisioner)?], ..ClaimEdit::default() };
    Some(Write::claim(&rules::CLAIM_MIGRATION, claim, Edit::Claim(edit)))
}

/// Updates a volume's migrated-to annotation and finalizers for its provisioner.
pub(crate) fn volume(volume: &Volume) -> Option<Write> {
    let provisioner = volume.annotations.get(Annotation::ProvisionedBy)?;
    let edit = VolumeEdit {
        annotations: migrated_to(&volume.annotations, provisioner).into_iter().collect(),
        finalizers: finalizers(volume, provisioner),
        ..VolumeEdit::default()
    };
    (edit != VolumeEdit::default()).then(|| Write::volume(&rules::VOLUME_MIGRATION, volume, Edit::Volume(edit)))
}

/// The change of the migrated-to annotation, if it is wrong.
pub(crate) fn migrated_to(annotations: &Annotations, provisioner: &str) -> Option<AnnotationEdit> {
    let current = annotations.get(Annotation::MigratedTo).map(Name::as_str).unwrap_or_default();
    match driver_of(provisioner) {
        Some(driver) if current != driver => Some((Annotation::MigratedTo, Some(Name::new_static(driver)))),
        None if !current.is_empty() => Some((Annotation::MigratedTo, None)),
        Some(_) | None => None,
    }
}

/// The correct finalizers of a volume, if they differ. The binder adds one to in-tree volumes with
/// policy Delete; for migrated volumes, the driver's provisioner adds its own.
fn finalizers(volume: &Volume, provisioner: &str) -> Option<Box<[Name]>> {
    let mut wanted: Vec<Name> = volume.finalizers.to_vec();
    if driver_of(provisioner).is_some() {
        wanted.retain(|name| name != finalizer::PV_CONTROLLER);
    } else if provisioner.starts_with(IN_TREE_PREFIX) {
        match volume.policy {
            // The API server rejects new finalizers on a Terminating object.
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
