//! A driver's capabilities, and how to use the driver.

use crate::proto::controller_service_capability::{Type as ControllerType, rpc};
use crate::proto::plugin_capability::{Type as PluginType, service};
use crate::proto::{ControllerServiceCapability, PluginCapability};

/// The capabilities that a driver reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// CONTROLLER_SERVICE.
    pub controller_service: bool,
    /// VOLUME_ACCESSIBILITY_CONSTRAINTS: not every node can access every volume.
    pub topology: bool,
    /// CREATE_DELETE_VOLUME.
    pub create_delete_volume: bool,
    /// CREATE_DELETE_SNAPSHOT: volumes can be created from snapshots.
    pub create_delete_snapshot: bool,
    /// CLONE_VOLUME.
    pub clone_volume: bool,
    /// SINGLE_NODE_MULTI_WRITER: distinguishes ReadWriteOnce from ReadWriteOncePod.
    pub single_node_multi_writer: bool,
    /// MODIFY_VOLUME: accepts the parameters of VolumeAttributesClasses.
    pub modify_volume: bool,
    /// PUBLISH_UNPUBLISH_VOLUME: volumes are attached, so VolumeAttachments are checked before
    /// deletion.
    pub publish_unpublish_volume: bool,
    /// GET_CAPACITY.
    pub get_capacity: bool,
}

impl Capabilities {
    /// Reads the responses to GetPluginCapabilities and ControllerGetCapabilities. Unknown
    /// capabilities are ignored.
    pub fn of(plugin: &[PluginCapability], controller: &[ControllerServiceCapability]) -> Capabilities {
        let services = |wanted: service::Type| {
            plugin.iter().any(
                |capability| matches!(&capability.r#type, Some(PluginType::Service(reported)) if reported.r#type == wanted as i32),
            )
        };
        let calls = |wanted: rpc::Type| {
            controller.iter().any(
                |capability| matches!(&capability.r#type, Some(ControllerType::Rpc(reported)) if reported.r#type == wanted as i32),
            )
        };
        Capabilities {
            controller_service: services(service::Type::ControllerService),
            topology: services(service::Type::VolumeAccessibilityConstraints),
            create_delete_volume: calls(rpc::Type::CreateDeleteVolume),
            create_delete_snapshot: calls(rpc::Type::CreateDeleteSnapshot),
            clone_volume: calls(rpc::Type::CloneVolume),
            single_node_multi_writer: calls(rpc::Type::SingleNodeMultiWriter),
            modify_volume: calls(rpc::Type::ModifyVolume),
            publish_unpublish_volume: calls(rpc::Type::PublishUnpublishVolume),
            get_capacity: calls(rpc::Type::GetCapacity),
        }
    }
}

/// A driver, and how to use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// The driver's name, which is also the provisioner's name.
    pub driver: String,
    /// Identifies this provisioner in the attributes of the volumes that it creates.
    pub identity: String,
    /// The driver's capabilities.
    pub capabilities: Capabilities,
    /// The filesystem type for classes that name none.
    pub default_fs_type: String,
    /// Pass the names of claim and volume to CreateVolume.
    pub extra_metadata: bool,
    /// Set `readOnly` on volumes with access mode ReadOnlyMany only.
    pub read_only: bool,
    /// Reject a volume mode that differs from the snapshot's, unless the snapshot allows it.
    pub keep_volume_mode: bool,
    /// Support VolumeAttributesClasses.
    pub attributes_classes: bool,
    /// Support data sources in other namespaces, subject to ReferenceGrants.
    pub cross_namespace: bool,
}
