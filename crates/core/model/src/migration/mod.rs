//! Migration of in-tree plugins to CSI drivers: which driver replaces which plugin, and how IDs and
//! topology labels translate.

mod id;
mod topology;

pub use id::csi_id;
pub use topology::{
    BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER, ZONE_PARAMETER, ZONES_PARAMETER, region, topologies,
};

/// The prefix of all in-tree plugins' names.
pub const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// An in-tree plugin that is migrated to CSI.
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
    /// vSphere disks.
    Vsphere,
    /// Portworx.
    Portworx,
}

impl Plugin {
    /// Every plugin.
    pub const ALL: [Plugin; 7] = [
        Plugin::AwsEbs,
        Plugin::GcePd,
        Plugin::AzureFile,
        Plugin::AzureDisk,
        Plugin::Cinder,
        Plugin::Vsphere,
        Plugin::Portworx,
    ];

    /// Its name, as a provisioner of classes.
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

    /// The CSI driver that replaces it.
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

    /// The plugin with that name.
    pub fn named(name: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// The plugin that a CSI driver replaces.
    pub fn of_driver(driver: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.driver() == driver)
    }

    /// The zone label of the driver, if it differs from that of the plugin.
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

    /// Whether its classes may have zones in their parameters.
    pub fn takes_zones(self) -> bool {
        match self {
            Plugin::AwsEbs | Plugin::GcePd | Plugin::AzureDisk => true,
            Plugin::AzureFile | Plugin::Cinder | Plugin::Vsphere | Plugin::Portworx => false,
        }
    }
}

/// The CSI driver that replaces an in-tree plugin, if it is migrated.
pub fn driver_of(plugin: &str) -> Option<&'static str> {
    Plugin::named(plugin).map(Plugin::driver)
}
