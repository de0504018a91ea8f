//! The rules of the binder. docs/rules.md is generated from these declarations.

use bindery_rules_api::rules;

rules! {
    NOT_HANDLED = "object.not-handled": "The binder handles only PersistentVolumeClaims and PersistentVolumes. It does nothing with other objects.";

    // === Any claim ===
    CLAIM_DELETED = "claim.deleted": "The claim does not exist. Nothing is done.";
    CLAIM_MALFORMED = "claim.malformed": "A field of the claim cannot be parsed. The claim is not processed until the field is fixed.";
    CLAIM_MIGRATION = "claim.migration": "CSI migration for the claim's provisioner was turned on or off. The `migrated-to` annotation is updated before anything else.";
    CLAIM_VOLUME_SCRUBBING = "claim.volume-scrubbing": "The claim's volume is being scrubbed. The claim is not bound to it until the scrub has ended.";

    // === A claim that is not bound and names no volume ===
    CLAIM_CLASS_INVALID = "claim.unbound.class-invalid": "The claim's StorageClass has no valid volumeBindingMode. The claim stays Pending until the class is fixed.";
    CLAIM_SELECTOR_INVALID = "claim.unbound.selector-invalid": "The claim's label selector is invalid, so no volume can match it. The claim stays Pending until the selector is fixed.";
    CLAIM_RESERVED = "claim.unbound.reserved": "The claimRef of a suitable volume names this claim. The claim is bound to it, even if other volumes match.";
    CLAIM_FITS = "claim.unbound.fits": "At least one available volume satisfies the claim. The claim is bound to the one with the fewest access modes, then the smallest capacity, then the first name.";
    CLAIM_DEFAULT_CLASS = "claim.unbound.default-class": "No available volume satisfies the claim, and it names no StorageClass. It gets the default class; if several classes are marked as default, the newest.";
    CLAIM_WAITS_FOR_CONSUMER = "claim.unbound.waits-for-consumer": "The StorageClass uses WaitForFirstConsumer, and no pod uses the claim. The claim stays Pending until a pod uses it.";
    CLAIM_WAITS_FOR_SCHEDULING = "claim.unbound.waits-for-scheduling": "The StorageClass uses WaitForFirstConsumer, and the pods that use the claim are not scheduled. The claim stays Pending until the scheduler selects a node.";
    CLAIM_NO_VOLUME_FITS = "claim.unbound.no-volume-fits": "No available volume satisfies the claim, and it has no StorageClass that could provision one. The claim stays Pending until a matching volume appears.";

    // === A claim that is not bound and names a volume ===
    CLAIM_NAMED_MISSING = "claim.named.missing": "The volume in the claim's spec.volumeName does not exist. The claim stays Pending until it does, and is not bound to another volume.";
    CLAIM_NAMED_VOLUME_MALFORMED = "claim.named.volume-malformed": "A field of the volume in the claim's spec.volumeName cannot be parsed. The claim stays Pending until the field is fixed.";
    CLAIM_NAMED_MISMATCH = "claim.named.mismatch": "The volume in the claim's spec.volumeName is available but does not satisfy the claim. The claim stays Pending.";
    CLAIM_NAMED_FREE = "claim.named.free": "The volume in the claim's spec.volumeName is available and satisfies the claim. They are bound.";
    CLAIM_NAMED_RESERVED = "claim.named.reserved": "The claim and the volume in its spec.volumeName refer to each other. They are bound without checking whether the volume satisfies the claim.";
    CLAIM_NAMED_TAKEN = "claim.named.taken": "The volume in the claim's spec.volumeName is bound to another claim. The claim stays Pending until the volume becomes available.";
    CLAIM_NAMED_CONFLICT = "claim.named.conflict": "A controller set the claim's spec.volumeName to a volume that is bound to another claim, and the bind-completed annotation was removed. The claim must be fixed by hand.";

    // === A claim that was bound ===
    CLAIM_LOST_REFERENCE = "claim.bound.lost-reference": "The claim was bound, but its spec.volumeName is empty. It is marked Lost.";
    CLAIM_LOST_VOLUME = "claim.bound.lost-volume": "The claim was bound, and a live read shows that its volume does not exist. It is marked Lost.";
    CLAIM_VERIFY_VOLUME = "claim.bound.verify-volume": "The claim's volume appears to be deleted or bound to another claim. It is read live before the claim is marked Lost.";
    CLAIM_VOLUME_MALFORMED = "claim.bound.volume-malformed": "A field of the claim's volume cannot be parsed. Nothing is done until the field is fixed.";
    CLAIM_VOLUME_UNCLAIMED = "claim.bound.volume-unclaimed": "The claimRef of the claim's volume is empty. It is set to this claim again.";
    CLAIM_BOUND = "claim.bound.correct": "The claim and its volume refer to each other. Any field of the bind that is still missing is written.";
    CLAIM_MISBOUND = "claim.bound.misbound": "A live read shows that the claim's volume is bound to another claim. This claim is marked Lost.";

    // === The four writes of a bind ===
    BIND_RESERVE = "bind.1-reserve-volume": "First, the volume's claimRef is set to the claim. From now on no other claim can be bound to the volume.";
    BIND_MARK_VOLUME = "bind.2-mark-volume": "Second, the volume's phase is set to Bound.";
    BIND_POINT = "bind.3-point-claim": "Third, the claim's spec.volumeName is set to the volume. It cannot be changed afterwards.";
    BIND_MARK_CLAIM = "bind.4-mark-claim": "Last, the claim's phase is set to Bound, with the volume's capacity and access modes.";
    BIND_NO_CAPACITY = "bind.no-capacity": "The volume has no storage capacity, so the claim's status cannot be written. The bind is completed once the volume has a capacity.";
    STATUS_PENDING = "status.pending": "The claim is waiting. Its phase is set to Pending, and the capacity and access modes of a former volume are removed.";
    STATUS_LOST = "status.lost": "The claim has lost its volume. Its phase is set to Lost.";
    STATUS_VOLUME = "status.volume": "The volume's phase in its status is out of date. It is updated.";

    // === Provisioning ===
    PROVISION_DISABLED = "provision.disabled": "Dynamic provisioning is disabled. The claim stays Pending until a matching volume appears.";
    PROVISION_CLASS_MISSING = "provision.class-missing": "The claim's StorageClass does not exist. The claim stays Pending until it does.";
    PROVISION_NO_PLUGIN = "provision.no-plugin": "The StorageClass names an in-tree provisioner that cannot provision volumes, such as kubernetes.io/no-provisioner. The claim stays Pending until a matching volume is created or the class is replaced.";
    PROVISION_REQUEST = "provision.external.request": "The StorageClass names an external provisioner. The claim is annotated with its name, which requests a volume.";
    PROVISION_WAIT = "provision.external.wait": "A volume was requested from the external provisioner. The claim stays Pending until the provisioner creates it.";
    PROVISION_DATA_SOURCE = "provision.in-tree.data-source": "The claim has a data source, which only CSI drivers support. The in-tree provisioner does not create a volume.";
    PROVISION_ANNOTATE = "provision.in-tree.annotate": "The in-tree provisioner will create the volume. The claim is annotated with the provisioner's name first.";
    PROVISION_READ_VOLUME = "provision.in-tree.read-volume": "The claim's volume may already exist. It is read live before storage is created or deleted.";
    PROVISION_EXISTS = "provision.in-tree.exists": "A volume with the name for this claim exists. The claim is bound when the volume appears in the watch.";
    PROVISION_MOUNT_OPTIONS = "provision.in-tree.mount-options": "The StorageClass has mount options, which the in-tree provisioner does not support. No volume is created until the class is replaced.";
    PROVISION_UNSUPPORTED = "provision.in-tree.unsupported": "The in-tree provisioner is disabled or does not support this claim. No volume is created.";
    PROVISION_NODE_MISSING = "provision.in-tree.node-missing": "The node that the scheduler selected does not exist. Provisioning is retried with back-off.";
    PROVISION_CREATE = "provision.in-tree.create": "No volume exists for the claim. The in-tree provisioner creates the storage.";
    PROVISION_RESCHEDULE = "provision.in-tree.reschedule": "The storage could not be created on the selected node. The selected-node annotation is removed, so that the scheduler selects another node.";
    PROVISION_FAILED = "provision.in-tree.failed": "The storage could not be created. Provisioning is retried with back-off.";
    PROVISION_SAVE = "provision.in-tree.save": "The storage was created. The PersistentVolume is created with a claimRef to the claim.";
    PROVISION_SAVE_RETRY = "provision.in-tree.save-retry": "The PersistentVolume could not be created. It is tried again after ten seconds.";
    PROVISION_SAVED = "provision.in-tree.saved": "The PersistentVolume was created. The claim is bound when the volume appears in the watch.";
    PROVISION_DISCARD = "provision.in-tree.discard": "The PersistentVolume could not be created after several attempts. The storage is deleted again.";
    PROVISION_DISCARD_RETRY = "provision.in-tree.discard-retry": "The unused storage could not be deleted. It is tried again after ten seconds.";
    PROVISION_ORPHANED = "provision.in-tree.orphaned": "The unused storage could not be deleted after several attempts. The next attempt to provision reuses it; if the claim is deleted first, the storage must be deleted by hand.";
    PROVISION_DISCARDED = "provision.in-tree.discarded": "The unused storage was deleted. Provisioning starts again after a back-off.";

    // === Any volume ===
    VOLUME_DELETED = "volume.deleted": "The volume does not exist. Nothing is done.";
    VOLUME_MALFORMED = "volume.malformed": "A field of the volume cannot be parsed. The volume is not processed until the field is fixed.";
    VOLUME_MIGRATION = "volume.migration": "CSI migration for the volume's plugin was turned on or off. The `migrated-to` annotation and the finalizers are updated before anything else.";

    // === A volume without a claim ===
    VOLUME_WANTED = "volume.unclaimed.hand-off": "The volume is unclaimed, and a Pending claim may match it. The claim is processed first.";
    VOLUME_UNCLAIMED = "volume.unclaimed.available": "The volume has no claimRef. Its phase is Available.";

    // === A volume whose claimRef has no UID ===
    VOLUME_EXPECTED = "volume.reserved.hand-off": "The volume's claimRef names an existing claim that may be bound to it. The claim is processed first.";
    VOLUME_RESERVED = "volume.reserved.available": "The volume's claimRef names a claim without a UID. The volume is Available until that claim is bound to it.";

    // === A volume whose claimRef has a UID ===
    VOLUME_VERIFY_CLAIM = "volume.claimed.verify-claim": "The volume's claim appears to be deleted. It is read live before the volume is released.";
    VOLUME_CLAIM_MALFORMED = "volume.claimed.claim-malformed": "A field of the volume's claim cannot be parsed. Nothing is done until the field is fixed.";
    VOLUME_MODE_MISMATCH = "volume.claimed.mode-mismatch": "The volume's claim requests another volumeMode. They are not bound.";
    VOLUME_WAITS_FOR_CLAIM = "volume.claimed.waits-for-claim": "The volume's claim does not name the volume yet. Processing the claim completes the bind.";
    VOLUME_BOUND = "volume.claimed.bound": "The volume and its claim refer to each other. The volume's phase is Bound.";
    VOLUME_UNNEEDED = "volume.claimed.unneeded": "The volume was provisioned for a claim that is bound to another volume. It is released.";
    VOLUME_UNBIND = "volume.claimed.unbind": "The volume's claim is bound to another volume. The claimRef is removed; if a user had set it, only its UID is removed.";
    VOLUME_RELEASE = "volume.claimed.released": "The volume's claim was deleted. The volume's phase is set to Released.";

    // === Reclaiming a released volume ===
    RECLAIM_MIGRATED = "reclaim.migrated": "The volume was migrated to a CSI driver. The driver's provisioner reclaims it.";
    RECLAIM_RETAIN = "reclaim.retain": "The volume's reclaim policy is Retain. It stays Released until an administrator deletes it or removes its claimRef.";
    RECLAIM_UNKNOWN_POLICY = "reclaim.unknown-policy": "The volume's reclaim policy is unknown. The volume is marked Failed and kept.";
    RECLAIM_VERIFY = "reclaim.verify": "The volume is about to be deleted or scrubbed. It and its claim are read live first, to verify that no claim needs the data.";
    RECLAIM_NOT_RELEASED = "reclaim.not-released": "A live read shows that the volume has changed or that its claim exists. The volume is not reclaimed.";
    DELETE_EXTERNAL = "reclaim.delete.external": "The volume belongs to an external provisioner. It is Released until the provisioner deletes it.";
    DELETE_NO_PLUGIN = "reclaim.delete.no-plugin": "No plugin can delete the volume's backing storage. The volume is marked Failed.";
    DELETE_STORAGE = "reclaim.delete.storage": "Live reads show that no claim needs the volume. Its backing storage is deleted.";
    DELETE_IN_USE = "reclaim.delete.in-use": "The volume's backing storage is still in use. Deletion is retried with back-off.";
    DELETE_FAILED = "reclaim.delete.failed": "The volume's backing storage could not be deleted. Deletion is retried with back-off.";
    DELETE_VOLUME = "reclaim.delete.volume": "The backing storage is deleted. The PersistentVolume is deleted.";
    DELETE_FINALIZER = "reclaim.delete.finalizer": "The backing storage is deleted, and the PersistentVolume is Terminating. The finalizer that protected it is removed.";
    RECYCLE_IN_USE = "reclaim.recycle.in-use": "Pods still use the volume. It is not scrubbed until they end.";
    RECYCLE_NO_PLUGIN = "reclaim.recycle.no-plugin": "No plugin can scrub the volume. The volume is marked Failed.";
    RECYCLE_CREATE_POD = "reclaim.recycle.create-pod": "Live reads show that no claim needs the volume. A recycler pod is created, with a scheduling gate, so that it does not run yet.";
    RECYCLE_MARK = "reclaim.recycle.mark": "The recycler pod exists. The volume is annotated with the pod's UID, so that no instance gives it to a claim while the pod may run.";
    RECYCLE_SCRUB = "reclaim.recycle.scrub": "The volume is annotated with the UID of its recycler pod, and live reads show that no claim needs it. The pod's scheduling gate is removed, and the pod scrubs the volume.";
    RECYCLE_SUPERSEDED = "reclaim.recycle.superseded": "Another instance has started to scrub the volume with another recycler pod. This instance starts over with that pod.";
    RECYCLE_STOP = "reclaim.recycle.stop": "The volume may be scrubbed by a recycler pod, but is no longer to be recycled. The pod is deleted before the volume is used again.";
    RECYCLE_STOPPED = "reclaim.recycle.stopped": "The recycler pod is gone. The annotation with its UID is removed from the volume.";
    RECYCLE_FAILED = "reclaim.recycle.failed": "The volume could not be scrubbed. Scrubbing is retried with back-off.";
    RECYCLE_DONE = "reclaim.recycle.done": "The volume was scrubbed. Its claimRef and the annotation with the UID of the recycler pod are removed, and it becomes Available.";
}
