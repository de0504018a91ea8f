//! Finalizers that our controllers, or those beside them, put on objects.

/// The binder's: a volume of an in-tree plugin is deleted only after its storage.
pub const PV_CONTROLLER: &str = "kubernetes.io/pv-controller";
/// The external provisioner's, on a volume.
pub const EXTERNAL_PROVISIONER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// The protection controller's, on a volume.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// The protection controller's, on a claim.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The protection controller's, on an attributes class.
pub const VAC_PROTECTION: &str = "kubernetes.io/vac-protection";
