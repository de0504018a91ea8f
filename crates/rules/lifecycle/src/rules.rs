//! The rules of the lifecycle controllers. docs/rules.md is generated from these declarations.

/// Rules of the ephemeral-volume controller.
pub mod ephemeral {
    bindery_rules_api::rules! {
        NOT_HANDLED = "ephemeral.not-handled": "The ephemeral-volume controller handles only pods. It does nothing with other objects.";
        POD_DELETED = "ephemeral.pod-deleted": "The pod does not exist. No claim is created.";
        POD_MALFORMED = "ephemeral.pod-malformed": "A field of the pod cannot be parsed. No claim is created until the field is fixed.";
        POD_TERMINATING = "ephemeral.pod-terminating": "The pod is Terminating. No claim is created for it.";
        NO_VOLUMES = "ephemeral.no-volumes": "The pod has no ephemeral volumes. No claim is needed.";
        COMPLETE = "ephemeral.complete": "Every ephemeral volume of the pod has its claim. Nothing is done.";
        CREATE_CLAIM = "ephemeral.create-claim": "An ephemeral volume of the pod has no claim. A claim owned by the pod is created from the volume's template.";
        READ_CLAIM = "ephemeral.read-claim": "The claim already exists, or the outcome of its creation is unknown. It is read live before an error is reported.";
        CONFLICT = "ephemeral.conflict": "A claim with the name for this volume exists but is not owned by the pod. It is left unchanged, and the pod waits until the claim is deleted.";
        FAILED = "ephemeral.failed": "The claim could not be created. It is tried again with back-off.";
    }
}

/// Rules of the claim-protection controller.
pub mod claim_protection {
    bindery_rules_api::rules! {
        NOT_HANDLED = "protection.claim.not-handled": "PVC protection handles only PersistentVolumeClaims. It does nothing with other objects.";
        DELETED = "protection.claim.deleted": "The claim does not exist. Nothing is done.";
        MALFORMED = "protection.claim.malformed": "A field of the claim cannot be parsed. Its finalizer is neither added nor removed until the field is fixed.";
        ADD_FINALIZER = "protection.claim.add-finalizer": "The claim has no protection finalizer. It is added, so that the claim is not removed while pods use it.";
        IN_USE = "protection.claim.in-use": "The claim is Terminating, and pods that are scheduled to a node use it. It stays until these pods are deleted.";
        LIST_PODS = "protection.claim.list-pods": "No pod in the cache uses the claim. The pods of its namespace are listed live before it is considered unused.";
        REMOVE_FINALIZER = "protection.claim.remove-finalizer": "The claim is Terminating, and a live list shows that no pod uses it. The protection finalizer is removed, and the claim can be deleted.";
        USED = "protection.claim.used": "A pod refers to the claim. Its `Unused` condition is set to False.";
        UNUSED = "protection.claim.unused": "A live list shows that no pod refers to the claim. Its `Unused` condition is set to True.";
        NO_ACTION = "protection.claim.no-action": "The claim is protected, or it is Terminating without the protection finalizer. Nothing is done.";
    }
}

/// Rules of the volume-protection controller.
pub mod volume_protection {
    bindery_rules_api::rules! {
        NOT_HANDLED = "protection.volume.not-handled": "PV protection handles only PersistentVolumes. It does nothing with other objects.";
        DELETED = "protection.volume.deleted": "The volume does not exist. Nothing is done.";
        MALFORMED = "protection.volume.malformed": "A field of the volume cannot be parsed. Its finalizer is neither added nor removed until the field is fixed.";
        ADD_FINALIZER = "protection.volume.add-finalizer": "The volume has no protection finalizer. It is added, so that the volume is not removed while it is bound.";
        IN_USE = "protection.volume.in-use": "The volume is Terminating and bound to a claim. It stays until the claim is deleted.";
        REMOVE_FINALIZER = "protection.volume.remove-finalizer": "The volume is Terminating and not bound. The protection finalizer is removed, and the volume can be deleted.";
        NO_ACTION = "protection.volume.no-action": "The volume is protected, or it is Terminating without the protection finalizer. Nothing is done.";
    }
}

/// Rules of the attributes-class-protection controller.
pub mod attributes_class_protection {
    bindery_rules_api::rules! {
        NOT_HANDLED = "protection.attributes-class.not-handled": "VolumeAttributesClass protection handles only VolumeAttributesClasses. It does nothing with other objects.";
        DELETED = "protection.attributes-class.deleted": "The VolumeAttributesClass does not exist. Nothing is done.";
        MALFORMED = "protection.attributes-class.malformed": "A field of the VolumeAttributesClass cannot be parsed. Its finalizer is neither added nor removed until the field is fixed.";
        ADD_FINALIZER = "protection.attributes-class.add-finalizer": "The VolumeAttributesClass has no protection finalizer. It is added, so that the class is not removed while claims or volumes refer to it.";
        IN_USE = "protection.attributes-class.in-use": "The VolumeAttributesClass is Terminating, and claims or volumes refer to it. It stays until they no longer do.";
        LIST_USERS = "protection.attributes-class.list-users": "No claim or volume in the cache refers to the VolumeAttributesClass. Claims and volumes are listed live before it is considered unused.";
        REMOVE_FINALIZER = "protection.attributes-class.remove-finalizer": "The VolumeAttributesClass is Terminating, and live lists show that nothing refers to it. The protection finalizer is removed, and the class can be deleted.";
        NO_ACTION = "protection.attributes-class.no-action": "The VolumeAttributesClass is protected, or it is Terminating without the protection finalizer. Nothing is done.";
    }
}

/// Rules of the expand controller.
pub mod expander {
    bindery_rules_api::rules! {
        NOT_HANDLED = "expansion.not-handled": "The expand controller handles only PersistentVolumeClaims. It does nothing with other objects.";
        CLAIM_DELETED = "expansion.claim-deleted": "The claim does not exist. Nothing is expanded.";
        MALFORMED = "expansion.malformed": "A field of the claim or of its volume cannot be parsed. Nothing is expanded until the field is fixed.";
        NOT_BOUND = "expansion.not-bound": "The claim is not bound. There is no volume to expand.";
        VOLUME_NOT_BOUND = "expansion.volume-not-bound": "The claim's volume does not exist or is not bound to the claim. Nothing is expanded.";
        LARGE_ENOUGH = "expansion.large-enough": "The claim's capacity is at least its request. Nothing is expanded.";
        EXTERNAL = "expansion.external": "The claim requests more than its capacity. An external resizer expands the volume.";
        MIGRATED = "expansion.migrated": "The claim requests more than its capacity, and its in-tree plugin was migrated to a CSI driver. The claim is annotated with the driver's resizer, which expands the volume.";
        FLEX_START = "expansion.flex.start": "The claim requests more than the capacity of its FlexVolume. The target size is recorded in the claim's status first.";
        FLEX_RESIZE = "expansion.flex.resize": "The target size is recorded. The FlexVolume's capacity is set to it; the driver resizes the storage at the next mount.";
        FLEX_PENDING = "expansion.flex.pending": "The file system of the FlexVolume must be expanded on a node. The claim's FileSystemResizePending condition is set.";
        FLEX_RECORD_SIZE = "expansion.flex.record-size": "The file system of the FlexVolume must be expanded on a node. The former size is recorded on the volume, so that the node can finish even if the claim is deleted.";
        FLEX_WAIT_FOR_NODE = "expansion.flex.wait-for-node": "The FlexVolume has its new size. The kubelet expands the file system.";
        FLEX_FINISH = "expansion.flex.finish": "The FlexVolume has volumeMode Block and its new size. The claim's capacity is updated, and the expansion is complete.";
        FLEX_CLEAR_SIZE = "expansion.flex.clear-size": "The file system was expanded. The former size is removed from the FlexVolume.";
    }
}

/// All rules of all lifecycle controllers.
pub fn all() -> impl Iterator<Item = &'static bindery_rules_api::Rule> {
    let sets = [
        ephemeral::ALL,
        claim_protection::ALL,
        volume_protection::ALL,
        attributes_class_protection::ALL,
        expander::ALL,
    ];
    sets.into_iter().flatten().copied()
}
