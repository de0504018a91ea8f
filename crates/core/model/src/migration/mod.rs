//! In-tree plugins whose work CSI drivers have taken over: who took over from whom, and what the same things are called on either side.

mod id;
mod places;

pub use id::csi_id;
pub use places::{
    BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER, ZONE_PARAMETER, ZONES_PARAMETER, region, topologies,
};

/// The prefix of all in-tree plugins' names.
pub const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// An in-tree plugin whose work a CSI driver has taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// AWS EBS.
    AwsEbs,
    /// GCE persistent disks.
    GcePd,
    /// Azure file shares.
    AzureFile,
    /// Azure disks.
    AzureDisk,
    /// OpenStack Cinder.
    Cinder,
    /// Disks of vSphere.
    Vsphere,
    /// Portworx.
    Portworx,
}

impl Plugin {
    /// All of them.
    pub const ALL: [Plugin; 7] = [
        Plugin::AwsEbs,
        Plugin::GcePd,
        Plugin::AzureFile,
        Plugin::AzureDisk,
        Plugin::Cinder,
        Plugin::Vsphere,
        Plugin::Portworx,
    ];

    /// Its name: classes ask for it by that.
    pub fn name(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "kubernetes.io/aws-ebs",
            Plugin::GcePd => "kubernetes.io/gce-pd",
            Plugin::AzureFile => "kubernetes.io/azure-file",
            Plugin::AzureDisk => "kubernetes.io/azure-disk",
            Plugin::Cinder => "kubernetes.io/cinder",
            Plugin::Vsphere => "kubernetes.io/vsphere-volume",
            Plugin::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// The CSI driver that has taken over from it.
    pub fn driver(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "ebs.csi.aws.com",
            Plugin::GcePd => "pd.csi.storage.gke.io",
            Plugin::AzureFile => "file.csi.azure.com",
            Plugin::AzureDisk => "disk.csi.azure.com",
            Plugin::Cinder => "cinder.csi.openstack.org",
            Plugin::Vsphere => "csi.vsphere.vmware.com",
            Plugin::Portworx => "pxd.portworx.com",
        }
    }

    /// The plugin of that name.
    pub fn named(name: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// The plugin that a CSI driver has taken over from.
    pub fn of_driver(driver: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.driver() == driver)
    }

    /// The label by which the driver's nodes say in which zone they are, where that differs from what the plugin's say.
    pub fn zone_key(self) -> Option<&'static str> {
        match self {
            Plugin::AwsEbs => Some("topology.ebs.csi.aws.com/zone"),
            Plugin::GcePd => Some("topology.gke.io/zone"),
            Plugin::AzureDisk => Some("topology.disk.csi.azure.com/zone"),
            Plugin::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Plugin::Vsphere => Some("topology.csi.vmware.com/zone"),
            Plugin::AzureFile | Plugin::Portworx => None,
        }
    }

    /// Whether a class of it may name zones among its parameters.
    pub fn takes_zones(self) -> bool {
        match self {
            Plugin::AwsEbs | Plugin::GcePd | Plugin::AzureDisk => true,
            Plugin::AzureFile | Plugin::Cinder | Plugin::Vsphere | Plugin::Portworx => false,
        }
    }
}

/// The CSI driver that has taken over from an in-tree plugin, if one has.
pub fn driver_of(plugin: &str) -> Option<&'static str> {
    Plugin::named(plugin).map(Plugin::driver)
}
