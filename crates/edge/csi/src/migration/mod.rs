//! Classes and volumes of in-tree plugins, which a CSI driver has taken over from: what they are in the driver's words, and what
//! the driver's volumes are in the plugin's.
//!
//! ```text
//!   class (in-tree) ─▶ parameters ─▶ CreateVolume ─▶ volume (CSI) ─▶ to_in_tree ─▶ volume (in-tree)
//!                                    DeleteVolume ◀─ handle ◀──────────────────────────┘
//! ```
//!
//! Where a class's volumes may be made is translated before an order is written, with the zones of nodes: see
//! [`bindery_model::migration::topologies`].

mod class;
mod handle;
mod places;
mod source;

pub(crate) use class::parameters;
pub(crate) use handle::handle;
pub(crate) use source::to_in_tree;

use bindery_model::migration::Plugin;
use serde_json::Value;

use crate::fields::text;
use crate::setup::Setup;

/// The plugin that a class asks for, where our driver has taken over from it.
pub(crate) fn plugin_of(setup: &Setup, class: &Value) -> Option<Plugin> {
    Plugin::of_driver(&setup.driver).filter(|plugin| text(class, "/provisioner") == Some(plugin.name()))
}

/// The field of a volume's spec that is a plugin's.
fn field(plugin: Plugin) -> &'static str {
    match plugin {
        Plugin::AwsEbs => "awsElasticBlockStore",
        Plugin::GcePd => "gcePersistentDisk",
        Plugin::AzureFile => "azureFile",
        Plugin::AzureDisk => "azureDisk",
        Plugin::Cinder => "cinder",
        Plugin::Vsphere => "vsphereVolume",
        Plugin::Portworx => "portworxVolume",
    }
}

#[cfg(test)]
mod tests;
