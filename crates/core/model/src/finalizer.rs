//! Finalizers of our controllers and of others.

/// The binder's, on a volume of an in-tree plugin: its backing storage is deleted first.
pub const PV_CONTROLLER: &str = "kubernetes.io/pv-controller";
/// The external provisioner's, on a volume.
pub const EXTERNAL_PROVISIONER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// That of earlier versions of our provisioner, on a claim that was being provisioned.
pub const PROVISIONING: &str = "bindery.dev/provisioning";
/// The external provisioner's, on a claim that is being cloned.
pub const CLONING: &str = "provisioner.storage.kubernetes.io/cloning-protection";
/// The protection controller's, on a volume.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// The protection controller's, on a claim.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The protection controller's, on an attributes class.
pub const VAC_PROTECTION: &str = "kubernetes.io/vac-protection";
