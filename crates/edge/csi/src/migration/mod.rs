//! CSI migration: translates classes and volumes of in-tree plugins to those of the CSI driver that
//! replaces them, and back.
//!
//! ```text
//!   class (in-tree) ─▶ parameters ─▶ CreateVolume ─▶ volume (CSI) ─▶ to_in_tree ─▶ volume (in-tree)
//!                                    DeleteVolume ◀─ handle ◀──────────────────────────┘
//! ```
//!
//! The topology of in-tree classes is translated earlier, when the provision request is written:
//! see [`bindery_model::migration::topologies`].

mod class;
mod handle;
mod source;
mod topology;

pub(crate) use class::parameters;
pub(crate) use handle::handle;
pub(crate) use source::to_in_tree;

use bindery_model::migration::Plugin;
use serde_json::Value;

use crate::fields::text;
use crate::setup::Setup;

/// The in-tree plugin that a class names, if our driver replaces it.
pub(crate) fn plugin_of(setup: &Setup, class: &Value) -> Option<Plugin> {
    Plugin::of_driver(&setup.driver).filter(|plugin| text(class, "/provisioner") == Some(plugin.name()))
}

/// The field of `spec` that a plugin's volumes use.
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
