//! Who makes, deletes and scrubs volumes: an in-tree plugin, somebody outside, or nobody.

use bindery_model::migration::{IN_TREE_PREFIX, driver_of};
use bindery_model::{Annotation, Class, Name, Source, Volume};
use bindery_rules_api::Plugin;

/// Who does something about a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// A plugin of ours.
    InTree(Plugin),
    /// An external provisioner of that name.
    External(Name),
    /// NoObserver, and why.
    NoObserver(String),
}

/// The plugin of a name. NFS can only be scrubbed: it neither makes nor deletes.
fn plugin(name: &str) -> Option<Plugin> {
    [Plugin::HostPath, Plugin::Nfs].into_iter().find(|plugin| plugin.as_str() == name)
}

/// Who makes the volumes of a class.
pub(crate) fn provisioner(class: &Class) -> Who {
    let name = &class.provisioner;
    if let Some(driver) = driver_of(name) {
        return Who::External(Name::new_static(driver));
    }
    match plugin(name) {
        Some(Plugin::HostPath) => Who::InTree(Plugin::HostPath),
        Some(Plugin::Nfs) => Who::NoObserver("no provisionable volume plugin matched".into()),
        None if name.starts_with(IN_TREE_PREFIX) => Who::NoObserver(format!("no volume plugin matched name: {name}")),
        None => Who::External(name.clone()),
    }
}

/// Who deletes what lies behind a volume.
pub(crate) fn deleter(volume: &Volume) -> Who {
    let by = volume.annotations.get(Annotation::ProvisionedBy).filter(|name| !name.is_empty());
    if let Some(name) = by {
        return match plugin(name) {
            Some(Plugin::HostPath) => Who::InTree(Plugin::HostPath),
            Some(Plugin::Nfs) => Who::NoObserver("no deletable volume plugin matched".into()),
            None if name.starts_with(IN_TREE_PREFIX) => {
                Who::NoObserver(format!("no volume plugin matched name: {name}"))
            }
            None => Who::External(name.clone()),
        };
    }
    if let Some(driver) = volume.annotations.get(Annotation::MigratedTo) {
        return Who::External(driver.clone());
    }
    let nobody = |why: &str| {
        let name = volume.name().as_str();
        Who::NoObserver(format!("error getting deleter volume plugin for volume {name:?}: {why}"))
    };
    match &volume.source {
        Source::Csi(driver) => Who::External(driver.clone()),
        Source::HostPath(_) => Who::InTree(Plugin::HostPath),
        Source::Nfs(_) => nobody("no deletable volume plugin matched"),
        Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => nobody("no volume plugin matched"),
    }
}

/// The directory behind a volume that the host-path deleter may remove; why it must not, otherwise. Only what lies in a `tmp`
/// directory, as upstream; and never by a way that leads back out of it.
pub(crate) fn deletable_path(volume: &Volume) -> Result<Name, String> {
    let Source::HostPath(path) = &volume.source else {
        let name = volume.name().as_str();
        return Err(format!(
            "failed to create deleter for volume {name:?}: spec.PersistentVolumeSource.HostPath is nil"
        ));
    };
    let is_below_tmp = path.find("/tmp/").is_some_and(|at| path.len() > at + "/tmp/".len());
    let leads_out = path.split('/').any(|part| part == "..");
    if is_below_tmp && !leads_out {
        Ok(path.clone())
    } else {
        Err(format!("host_path deleter only supports /tmp/.+ but received provided {path}"))
    }
}
