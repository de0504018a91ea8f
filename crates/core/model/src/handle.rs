//! The identity of backing storage: a CSI volume handle, or the ID of an in-tree plugin.

use serde::Deserialize;

use crate::Name;

/// The component that attaches a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attacher {
    /// A CSI driver, named by the volume's source.
    Csi,
    /// AWS EBS, in-tree.
    AwsEbs,
    /// A GCE persistent disk, in-tree.
    GcePd,
    /// A managed Azure disk, in-tree.
    AzureDisk,
    /// An unmanaged Azure disk, in-tree, which cannot be migrated to CSI.
    AzureBlob,
    /// OpenStack Cinder, in-tree.
    Cinder,
    /// Portworx, in-tree.
    Portworx,
}

impl Attacher {
    /// The name of the in-tree plugin, if it is one.
    pub fn plugin(self) -> Option<&'static str> {
        Some(match self {
            Attacher::Csi => return None,
            Attacher::AwsEbs => "kubernetes.io/aws-ebs",
            Attacher::GcePd => "kubernetes.io/gce-pd",
            Attacher::AzureDisk | Attacher::AzureBlob => "kubernetes.io/azure-disk",
            Attacher::Cinder => "kubernetes.io/cinder",
            Attacher::Portworx => "kubernetes.io/portworx-volume",
        })
    }

    /// Whether that in-tree plugin can be migrated to CSI.
    pub fn is_migrated(plugin: &str) -> bool {
        let all = [Attacher::AwsEbs, Attacher::GcePd, Attacher::AzureDisk, Attacher::Cinder, Attacher::Portworx];
        all.into_iter().any(|attacher| attacher.plugin() == Some(plugin))
    }
}

/// The identity of backing storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// The component that attaches it.
    pub by: Attacher,
    /// Its ID for that component.
    pub id: Name,
}

/// The sources of in-tree plugins that are migrated to CSI, in volumes and in pods.
#[derive(Default)]
pub(crate) struct WireInTree {
    pub aws_elastic_block_store: Option<WireId>,
    pub gce_persistent_disk: Option<WireGcePd>,
    pub azure_disk: Option<WireAzure>,
    pub cinder: Option<WireId>,
    pub portworx_volume: Option<WireId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireId {
    #[serde(rename = "volumeID")]
    id: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireGcePd {
    pd_name: Name,
    read_only: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireAzure {
    #[serde(rename = "diskURI")]
    uri: Name,
    kind: Option<Name>,
}

impl WireInTree {
    /// The storage, if it is of one of these plugins, and whether it is read-only.
    pub fn parse(self) -> Option<(Handle, bool)> {
        let (by, id) = if let Some(disk) = self.gce_persistent_disk {
            return Some((Handle { by: Attacher::GcePd, id: disk.pd_name }, disk.read_only.unwrap_or_default()));
        } else if let Some(disk) = self.aws_elastic_block_store {
            (Attacher::AwsEbs, disk.id)
        } else if let Some(disk) = self.azure_disk {
            let is_managed = disk.kind.is_none_or(|kind| kind.eq_ignore_ascii_case("managed"));
            (if is_managed { Attacher::AzureDisk } else { Attacher::AzureBlob }, disk.uri)
        } else if let Some(disk) = self.cinder {
            (Attacher::Cinder, disk.id)
        } else {
            (Attacher::Portworx, self.portworx_volume?.id)
        };
        Some((Handle { by, id }, false))
    }
}
