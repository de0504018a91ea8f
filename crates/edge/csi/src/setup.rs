//! What a driver can do, and how it is to be used.

use crate::proto::controller_service_capability::{Type as ControllerType, rpc};
use crate::proto::plugin_capability::{Type as PluginType, service};
use crate::proto::{ControllerServiceCapability, PluginCapability};

/// What a driver says that it can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It has a controller service at all.
    pub controller: bool,
    /// Its volumes are not reachable from everywhere.
    pub topology: bool,
    /// It makes and removes volumes.
    pub volumes: bool,
    /// It makes volumes from snapshots.
    pub snapshots: bool,
    /// It makes volumes from volumes.
    pub clones: bool,
    /// It tells a volume for one pod from a volume for one node.
    pub single_pods: bool,
    /// It takes the parameters of attributes classes.
    pub attributes: bool,
    /// Its volumes are attached to nodes, so that there are attachments to look at before one is removed.
    pub attachments: bool,
    /// It says how much room there is.
    pub capacity: bool,
}

impl Abilities {
    /// What a driver's answers to GetPluginCapabilities and ControllerGetCapabilities amount to. What is unknown is passed over.
    pub fn of(plugin: &[PluginCapability], controller: &[ControllerServiceCapability]) -> Abilities {
        let services = |wanted: service::Type| {
            plugin.iter().any(
                |capability| matches!(&capability.r#type, Some(PluginType::Service(said)) if said.r#type == wanted as i32),
            )
        };
        let calls = |wanted: rpc::Type| {
            controller.iter().any(
                |capability| matches!(&capability.r#type, Some(ControllerType::Rpc(said)) if said.r#type == wanted as i32),
            )
        };
        Abilities {
            controller: services(service::Type::ControllerService),
            topology: services(service::Type::VolumeAccessibilityConstraints),
            volumes: calls(rpc::Type::CreateDeleteVolume),
            snapshots: calls(rpc::Type::CreateDeleteSnapshot),
            clones: calls(rpc::Type::CloneVolume),
            single_pods: calls(rpc::Type::SingleNodeMultiWriter),
            attributes: calls(rpc::Type::ModifyVolume),
            attachments: calls(rpc::Type::PublishUnpublishVolume),
            capacity: calls(rpc::Type::GetCapacity),
        }
    }
}

/// A driver, and how it is to be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// The driver's name, which is also the provisioner's.
    pub driver: String,
    /// Which provisioner made a volume: noted among the volume's attributes.
    pub identity: String,
    /// What the driver can do.
    pub abilities: Abilities,
    /// The file system of volumes whose class names none.
    pub default_fs_type: String,
    /// Whether the driver is told the names of claim and volume.
    pub extra_metadata: bool,
    /// Whether a volume that may only be read is published so.
    pub read_only: bool,
    /// Whether a snapshot's volume mode is kept, unless the snapshot allows otherwise.
    pub keep_volume_mode: bool,
    /// Whether attributes classes are heeded.
    pub attributes_classes: bool,
    /// Whether a claim may be filled from another namespace, where that is granted.
    pub cross_namespace: bool,
}
