//! The rules for local disks. docs/rules.md is generated from this file.

/// Which disks get a volume.
pub mod discovery {
    bindery_rules_api::rules! {
        CLASS_MISSING = "local.discovery.class-missing": "The StorageClass does not exist. No volumes are created for it until it does.";
        CLASS_MALFORMED = "local.discovery.class-malformed": "The StorageClass has an invalid field. No volumes are created for it until the field is corrected.";
        CLASS_RECLAIM_POLICY = "local.discovery.class-reclaim-policy": "The StorageClass's reclaim policy is neither Retain nor Delete. Local disks support no other, so no volumes are created for it.";
        NODE_WITHOUT_HOSTNAME_LABEL = "local.discovery.node-without-hostname-label": "The node has no kubernetes.io/hostname label, which volumes need for their node affinity. No volumes are created until it has.";
        NAME_NOT_MATCHED = "local.discovery.name-not-matched": "The entry's name matches no namePattern of the class. The entry is ignored.";
        UNREADABLE = "local.discovery.unreadable": "The entry cannot be read. It gets no volume until it can.";
        UNSUPPORTED_TYPE = "local.discovery.neither-directory-nor-device": "The entry is neither a directory nor a block device, so it cannot be a volume.";
        VOLUME_EXISTS = "local.discovery.volume-exists": "The entry already has a volume. Nothing to do.";
        DEVICE_BECAME_DIRECTORY = "local.discovery.device-became-directory": "The volume was created for a block device, but its path is now a directory. Check the disk; nothing is done until it is a device again or the volume is deleted.";
        NAME_TAKEN = "local.discovery.name-taken": "A volume with the entry's volume name exists, but was created by another provisioner, for example for an earlier node with this name. The entry gets no volume until that one is deleted.";
        PATH_TAKEN = "local.discovery.path-taken": "Another volume on this node has the same path. A disk never gets two volumes.";
        SAME_DISK = "local.discovery.same-disk": "Another entry refers to the same disk and takes precedence. A disk never gets two volumes.";
        CLEANING = "local.discovery.being-cleaned": "The disk is being cleaned. It gets a new volume afterwards.";
        DIRECTORY_FOR_BLOCK = "local.discovery.directory-for-block": "The class has volumeMode Block, but the entry is a directory. It gets no volume.";
        NOT_MOUNTED = "local.discovery.not-mounted": "The directory is not a mount point. Its disk is not mounted yet, or it would use the space of another file system. It gets no volume.";
        NOT_EMPTY = "local.discovery.not-empty": "The disk contains data, and the class has onlyEmpty set. It gets no volume until the data is removed.";
        CREATE_VOLUME = "local.discovery.create-volume": "The disk is ready and has no volume yet. A volume is created for it.";
    }
}

/// Which released volumes are cleaned.
pub mod cleaning {
    bindery_rules_api::rules! {
        NOT_LOCAL = "local.cleaning.not-local": "The volume is not a local volume. There is nothing to clean.";
        CLASS_NOT_CONFIGURED = "local.cleaning.class-not-configured": "The volume's class is not configured, so the directory of its disk is unknown. The volume is neither cleaned nor deleted until the class is configured.";
        PATH_OUTSIDE_DIRECTORY = "local.cleaning.path-outside-directory": "The volume's path is not an entry of its class's directory. Nothing is cleaned.";
        PATH_SHARED = "local.cleaning.path-shared": "Another volume on this node has the same path and may own the data. Nothing is cleaned.";
        UNSUPPORTED_RECLAIM_POLICY = "local.cleaning.unsupported-reclaim-policy": "The volume is released, and its reclaim policy is neither Retain nor Delete. Local disks support no other, so the volume is left alone.";
        VOLUME_CHANGED = "local.cleaning.volume-changed": "The volume has changed, or is no longer Released, since the decision to clean it. Nothing is cleaned.";
        CLEAN = "local.cleaning.clean": "The volume is released and has reclaim policy Delete. The data on its disk is deleted, and then the volume.";
    }
}

/// What is deleted after a node was deleted.
pub mod deleted_node {
    bindery_rules_api::rules! {
        CLASS_NOT_SELECTED = "local.deleted-node.class-not-selected": "The volume is not local, or its class is not in --storageclass-names. It is ignored.";
        NO_HOSTNAME_AFFINITY = "local.deleted-node.no-hostname-affinity": "The volume's node affinity does not list host names, so it is unknown which nodes it is on. It is left alone.";
        NODE_EXISTS = "local.deleted-node.node-exists": "A node that can access the volume exists. The volume is left alone.";
        CLAIM_DELETED = "local.deleted-node.claim-deleted": "The volume's claim is deleted or being deleted, or was replaced by another claim with its name. There is no claim to delete.";
        CLAIM_BOUND_ELSEWHERE = "local.deleted-node.claim-bound-elsewhere": "The claim is bound to another volume. It is not deleted.";
        DELETE_CLAIM = "local.deleted-node.delete-claim": "The claim's volume is on a node that was deleted and did not come back in time. The claim is deleted, so that its pod can get a new one.";
        DELETE_VOLUME = "local.deleted-node.delete-volume": "The volume is on a deleted node and is not in use. The PersistentVolume is deleted.";
        VOLUME_KEPT = "local.deleted-node.volume-kept": "The volume is on a deleted node, but is bound without a claim UID, retained, Failed, Pending or already being deleted. It is left alone; delete it by hand if it is no longer needed.";
    }
}

/// All rules for local disks.
pub fn all() -> impl Iterator<Item = &'static bindery_rules_api::Rule> {
    [discovery::ALL, cleaning::ALL, deleted_node::ALL].into_iter().flatten().copied()
}
