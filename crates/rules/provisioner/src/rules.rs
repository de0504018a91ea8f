//! The rules of a provisioner. docs/rules.md is generated from these declarations.

bindery_rules_api::rules! {
    NOT_HANDLED = "provisioner.not-handled": "The provisioner handles only PersistentVolumeClaims, PersistentVolumes and its own provisioning records. It does nothing with other objects.";

    // === Claims ===
    CLAIM_DELETED = "provisioner.claim.deleted": "The claim does not exist. No volume is provisioned.";
    CLAIM_MALFORMED = "provisioner.claim.malformed": "A field of the claim cannot be parsed. No volume is provisioned until the field is fixed.";
    HAS_VOLUME = "provisioner.claim.has-volume": "The claim's spec.volumeName is set. No volume is provisioned.";
    NOT_REQUESTED = "provisioner.claim.not-requested": "The claim does not request a volume from this provisioner. It is handled elsewhere, or once its provisioner annotation is set.";
    CLASS_MISSING = "provisioner.claim.class-missing": "The claim's StorageClass does not exist. No volume is provisioned until it does.";
    CLASS_NOT_OURS = "provisioner.claim.class-not-ours": "The claim's StorageClass names another provisioner. This one does not provision a volume.";
    WAITS_FOR_NODE = "provisioner.claim.waits-for-node": "The StorageClass uses WaitForFirstConsumer, and the scheduler has not selected a node. No volume is provisioned until it does.";
    NO_BLOCK = "provisioner.claim.no-block": "The claim requests volumeMode Block, which the storage does not support. No volume is provisioned.";
    NAME_TAKEN = "provisioner.claim.name-taken": "A volume with the name for this claim belongs to another claim. No volume is provisioned until that volume is deleted.";
    VOLUME_TERMINATING = "provisioner.claim.volume-terminating": "The volume provisioned for the claim is being deleted. Another one is provisioned once it is deleted.";
    PREPARE = "provisioner.claim.prepare": "A volume is needed. The parameters of the request to the storage are collected first; nothing is created yet.";
    STALE = "provisioner.claim.stale": "The parameters were collected for another node, or for a former claim of the same name. They are collected again.";
    RECORD = "provisioner.claim.record": "The storage is about to be called. A provisioning record with the complete request is written first, so that a crash cannot leak storage.";
    CHECK_RECORD = "provisioner.claim.check-record": "It is unknown whether the provisioning record was written, or another instance has written one. It is read live.";
    RECORD_FAILED = "provisioner.claim.record-failed": "The provisioning record could not be written, so the storage is not called. It is tried again.";
    RECORDS_FULL = "provisioner.claim.records-full": "Too many volumes are being provisioned at the same time. The claim waits until others are finished.";
    RECORD_TOO_LARGE = "provisioner.claim.record-too-large": "The request to the storage is too large to be recorded, for example because it lists very many topology segments. No volume is provisioned until the claim or its class changes.";
    LEGACY_FINALIZER = "provisioner.claim.legacy-finalizer": "An earlier version of the provisioner has left its finalizer on the claim. The volume exists, so the finalizer is removed.";
    RECORD_ATTEMPT = "provisioner.claim.record-attempt": "The outcome of an earlier call to the storage is unknown. A new attempt is recorded before the storage is called again, so that no delayed write of the earlier attempt removes the record.";
    CREATE = "provisioner.claim.create": "The attempt is recorded. The storage creates the volume; repeating the call with the same parameters creates no second volume.";
    SAVE = "provisioner.claim.save": "The storage has created the volume. The PersistentVolume is created with a claimRef to the claim.";
    SAVE_FAILED = "provisioner.claim.save-failed": "The PersistentVolume could not be created. It is tried again; the created storage is kept.";
    CHECK = "provisioner.claim.check": "A PersistentVolume with the name for this claim already exists. It is read live and used only if it belongs to the claim.";
    DISCARD = "provisioner.claim.discard": "A PersistentVolume with the same name has other backing storage. The storage just created is deleted, because no PersistentVolume refers to it.";
    DISCARD_FAILED = "provisioner.claim.discard-failed": "The unused storage could not be deleted. It is tried again.";
    DISCARDED = "provisioner.claim.discarded": "The unused storage was deleted. Provisioning starts again after a back-off.";
    PROVISIONED = "provisioner.claim.provisioned": "The PersistentVolume for the claim exists. The provisioning record is removed, if there is one.";
    CREATED_NOTHING = "provisioner.claim.created-nothing": "The storage reported an error and has created nothing. The provisioning record is removed before provisioning is retried.";
    FAILED = "provisioner.claim.failed": "The storage reported an error and created nothing. Provisioning is retried with back-off.";
    OUTCOME_UNKNOWN = "provisioner.claim.outcome-unknown": "The storage did not answer, or is still working. The outcome is unknown, so the call is repeated with identical parameters.";
    NOT_ATTEMPTED = "provisioner.claim.not-attempted": "The storage could not be called. It is tried again; the outcome of earlier calls is unchanged.";
    INCONCLUSIVE = "provisioner.claim.inconclusive": "The storage reported an error that does not show what an earlier call with unknown outcome has created. The record is kept, and the call is repeated with identical parameters.";
    SUPERSEDED = "provisioner.claim.superseded": "Another instance has recorded an attempt since the storage was called. This answer may not be the last, so the storage is called again.";
    PARAMETERS_CHANGED = "provisioner.claim.parameters-changed": "The storage reports that a volume with this name exists with other parameters, and the outcome of an earlier call is unknown. The record is kept, so that the storage is not leaked, and the call is repeated.";
    INFEASIBLE = "provisioner.claim.infeasible": "The storage reported that it can never create such a volume. Provisioning is retried at long intervals.";
    NOT_OURS = "provisioner.claim.not-ours": "Another controller provisions the volume: a volume populator, or the provisioner on another node. This one does nothing.";
    RESCHEDULE = "provisioner.claim.reschedule": "The storage cannot create the volume on the selected node, and created nothing. The selected-node annotation is removed, so that the scheduler selects another node.";
    RELEASE_SOURCE = "provisioner.claim.release-source": "The claim is Terminating, and no other claim is being cloned from it. The cloning finalizer is removed.";
    SOURCE_IN_USE = "provisioner.claim.source-in-use": "The claim is Terminating, and another claim is being cloned from it. It stays until cloning has finished.";

    // === Records ===
    RECORD_REMOVED = "provisioner.record.removed": "The provisioning record does not exist anymore. Nothing is left to do.";
    RECORD_OF_CLAIM = "provisioner.record.of-claim": "The claim of the provisioning record exists. The record is handled with the claim; one of another instance is taken over if it still exists after 10 seconds.";
    RECORD_MALFORMED = "provisioner.record.malformed": "The provisioning record cannot be parsed, so the storage is not called. It has to be repaired or removed by hand.";
    RECORD_NOT_OURS = "provisioner.record.not-ours": "The provisioning record was written by another provisioner, or for another node. The storage is not called.";

    // === Volumes ===
    VOLUME_DELETED = "provisioner.volume.deleted": "The volume does not exist. Nothing is done.";
    VOLUME_MALFORMED = "provisioner.volume.malformed": "A field of the volume cannot be parsed. The volume is not processed until the field is fixed.";
    VOLUME_NOT_OURS = "provisioner.volume.not-ours": "The volume belongs to another provisioner, or to the instance on another node. This one does nothing.";
    ADD_FINALIZER = "provisioner.volume.add-finalizer": "The volume is Bound, and its reclaim policy is Delete. A finalizer is added, so that the PersistentVolume is not removed before its backing storage.";
    REMOVE_FINALIZER = "provisioner.volume.remove-finalizer": "The volume's reclaim policy is not Delete, or finalizers are disabled. The finalizer is removed, because the backing storage is kept.";
    KEPT = "provisioner.volume.kept": "The volume is not Released, or its reclaim policy is not Delete. Its backing storage is kept.";
    VERIFY = "provisioner.volume.verify": "The backing storage is about to be deleted. The volume, its claim and, if volumes are attached to nodes, its VolumeAttachments are read live first.";
    NOT_RELEASED = "provisioner.volume.not-released": "A live read shows that the volume has changed or may still be in use. Its backing storage is kept.";
    ATTACHED = "provisioner.volume.attached": "The volume is attached to a node. Its backing storage is deleted once it is detached.";
    DELETE_STORAGE = "provisioner.volume.delete-storage": "Live reads show that no claim needs the volume. Its backing storage is deleted.";
    DELETE_STORAGE_FAILED = "provisioner.volume.delete-storage-failed": "The backing storage could not be deleted. Deletion is retried with back-off.";
    DELETE_STORAGE_NOT_OURS = "provisioner.volume.delete-storage-not-ours": "The provisioner on another node deletes the backing storage. This one does nothing.";
    DELETE = "provisioner.volume.delete": "The backing storage is deleted. The PersistentVolume is deleted.";
    DELETED_FINALIZER = "provisioner.volume.deleted-finalizer": "The backing storage is deleted, and the PersistentVolume is Terminating. The finalizer that protected it is removed.";
}
