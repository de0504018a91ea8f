//! In-tree plugins whose work CSI drivers have taken over.

/// The prefix of all in-tree plugins' names.
pub const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// The CSI driver that has taken over from an in-tree plugin, if one has.
pub fn driver_of(plugin: &str) -> Option<&'static str> {
    Some(match plugin {
        "kubernetes.io/aws-ebs" => "ebs.csi.aws.com",
        "kubernetes.io/gce-pd" => "pd.csi.storage.gke.io",
        "kubernetes.io/azure-file" => "file.csi.azure.com",
        "kubernetes.io/azure-disk" => "disk.csi.azure.com",
        "kubernetes.io/cinder" => "cinder.csi.openstack.org",
        "kubernetes.io/vsphere-volume" => "csi.vsphere.vmware.com",
        "kubernetes.io/portworx-volume" => "pxd.portworx.com",
        _ => return None,
    })
}
