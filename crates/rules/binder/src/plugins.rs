//! Which plugin or provisioner provisions and deletes a volume.

use bindery_model::migration::{IN_TREE_PREFIX, driver_of};
use bindery_model::{Annotation, Class, Name, Source, Volume};
use bindery_rules_api::{HOST_PATH_PLUGIN, check_deletable_path};

/// The in-tree NFS plugin can recycle volumes, but neither provision nor delete them.
const NFS_PLUGIN: &str = "kubernetes.io/nfs";

/// Who provisions or deletes a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The in-tree host-path plugin.
    HostPath,
    /// An external provisioner.
    External(Name),
    /// No one can. The message is upstream's.
    None(String),
}

/// Who provisions the volumes of a class.
pub(crate) fn provisioner(class: &Class) -> Handler {
    let name = &class.provisioner;
    match driver_of(name) {
        Some(driver) => Handler::External(Name::new_static(driver)),
        None => by_name(name, "no provisionable volume plugin matched"),
    }
}

fn by_name(name: &Name, unsupported: &str) -> Handler {
    match name.as_str() {
        HOST_PATH_PLUGIN => Handler::HostPath,
        NFS_PLUGIN => Handler::None(unsupported.into()),
        in_tree if in_tree.starts_with(IN_TREE_PREFIX) => {
            Handler::None(format!("no volume plugin matched name: {name}"))
        }
        _ => Handler::External(name.clone()),
    }
}

/// Who deletes the backing storage of a volume.
pub(crate) fn deleter(volume: &Volume) -> Handler {
    let provisioner = volume.annotations.get(Annotation::ProvisionedBy).filter(|name| !name.is_empty());
    if let Some(name) = provisioner {
        return by_name(name, "no deletable volume plugin matched");
    }
    if let Some(driver) = volume.annotations.get(Annotation::MigratedTo) {
        return Handler::External(driver.clone());
    }
    let none = |why: &str| {
        let name = volume.name().as_str();
        Handler::None(format!("error getting deleter volume plugin for volume {name:?}: {why}"))
    };
    match &volume.source {
        Source::Csi(driver) => Handler::External(driver.clone()),
        Source::HostPath(_) => Handler::HostPath,
        Source::Nfs(_) => none("no deletable volume plugin matched"),
        Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => none("no volume plugin matched"),
    }
}

/// Checks that the host-path deleter may delete a volume's directory.
pub(crate) fn check_deletable(volume: &Volume) -> Result<(), String> {
    match &volume.source {
        Source::HostPath(path) => check_deletable_path(path),
        Source::Nfs(_) | Source::Csi(_) | Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => {
            let name = volume.name().as_str();
            Err(format!("failed to create deleter for volume {name:?}: spec.PersistentVolumeSource.HostPath is nil"))
        }
    }
}
