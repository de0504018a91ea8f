//! Every rule of the binder: a name that never changes, and a sentence of why. docs/rules.md is made from this.

use bindery_rules_api::rules;

rules! {
    NOT_OURS = "object.not-ours": "The binder decides about claims and volumes only.";

    // === Any claim ===
    CLAIM_GONE = "claim.gone": "The claim does not exist: there is nothing to do for it.";
    CLAIM_MALFORMED = "claim.malformed": "A field of the claim cannot be understood: it is left alone until that is mended.";
    CLAIM_MIGRATION = "claim.migration": "The claim's provisioner has moved to a CSI driver, or back: its migrated-to annotation is brought in line first.";

    // === A claim that is not bound and names no volume ===
    CLAIM_CLASS_UNCLEAR = "claim.unbound.class-unclear": "The claim's class does not say when its claims are bound: it waits until the class is mended.";
    CLAIM_SELECTOR_INVALID = "claim.unbound.selector-invalid": "The claim's selector makes no sense: no volume can be chosen by it.";
    CLAIM_RESERVED = "claim.unbound.reserved": "A volume is reserved for the claim and can serve it: it is bound to that one, whatever else is free.";
    CLAIM_FITS = "claim.unbound.fits": "A free volume fits: of those with the fewest access modes the smallest, then the first by name.";
    CLAIM_DEFAULT_CLASS = "claim.unbound.default-class": "No volume fits and the claim says nothing of a class: it gets the default class, the newest if there are several.";
    CLAIM_WAITS_FOR_CONSUMER = "claim.unbound.waits-for-consumer": "The class binds its claims when a pod uses them: no pod uses this one yet.";
    CLAIM_WAITS_FOR_SCHEDULING = "claim.unbound.waits-for-scheduling": "The class binds its claims when a pod uses them: pods use this one, and have no node yet.";
    CLAIM_NO_VOLUME_FITS = "claim.unbound.no-volume-fits": "No volume fits and the claim has no class that could make one: it waits until one appears.";

    // === A claim that is not bound and names a volume ===
    CLAIM_NAMED_MISSING = "claim.named.missing": "The volume that the claim names does not exist yet: it waits for that one and takes no other.";
    CLAIM_NAMED_UNREADABLE = "claim.named.unreadable": "A field of the volume that the claim names cannot be understood: nothing is done until that is mended.";
    CLAIM_NAMED_MISMATCH = "claim.named.mismatch": "The volume that the claim names is free but cannot serve it.";
    CLAIM_NAMED_FREE = "claim.named.free": "The volume that the claim names is free and can serve it: it is bound to it.";
    CLAIM_NAMED_RESERVED = "claim.named.reserved": "The volume that the claim names is reserved for it: the bind is completed, without further tests.";
    CLAIM_NAMED_TAKEN = "claim.named.taken": "The volume that the claim names belongs to another claim: it waits in case that changes.";
    CLAIM_NAMED_TAKEN_FROM_US = "claim.named.taken-from-us": "A controller gave the claim a volume that belongs to another claim. Somebody removed its bind-completed annotation: a person must look.";

    // === A claim that was bound ===
    CLAIM_LOST_REFERENCE = "claim.bound.lost-reference": "The claim was bound and names no volume any more: it is lost.";
    CLAIM_LOST_VOLUME = "claim.bound.lost-volume": "The claim's volume does not exist, by a live read: the claim is lost.";
    CLAIM_LOOKS_FOR_VOLUME = "claim.bound.looks-for-volume": "The claim's volume seems to be gone or another's: a live read must show it before the claim is called lost.";
    CLAIM_VOLUME_UNREADABLE = "claim.bound.volume-unreadable": "A field of the claim's volume cannot be understood: nothing is done until that is mended.";
    CLAIM_VOLUME_UNCLAIMED = "claim.bound.volume-unclaimed": "The claim's volume does not know it any more: the volume's side is restored.";
    CLAIM_BOUND = "claim.bound.correct": "Claim and volume belong to each other: whatever is still missing of the bind is written.";
    CLAIM_MISBOUND = "claim.bound.misbound": "The claim's volume belongs to another claim, by a live read: this claim is lost.";

    // === The four writes of a bind, and what goes with them ===
    BIND_RESERVE = "bind.1-reserve-volume": "First the volume points at the claim: from here on no other claim can have it.";
    BIND_MARK_VOLUME = "bind.2-mark-volume": "Then the volume is marked Bound.";
    BIND_POINT = "bind.3-point-claim": "Then the claim points at the volume, for good.";
    BIND_MARK_CLAIM = "bind.4-mark-claim": "Last the claim is marked Bound, with what it got.";
    BIND_NO_CAPACITY = "bind.no-capacity": "The volume does not say how much it holds: the claim cannot be told what it got.";
    STATUS_PENDING = "status.pending": "A claim that waits is marked Pending, and what was said of a former volume is removed.";
    STATUS_LOST = "status.lost": "A claim that lost its volume is marked Lost.";
    STATUS_VOLUME = "status.volume": "A volume is marked with the phase it is in.";

    // === Provisioning ===
    PROVISION_DISABLED = "provision.disabled": "Dynamic provisioning is switched off: the claim waits for a volume that fits.";
    PROVISION_CLASS_MISSING = "provision.class-missing": "The claim's class does not exist: it waits until it does.";
    PROVISION_NO_PLUGIN = "provision.no-plugin": "The class names an in-tree provisioner that does not exist or cannot make volumes.";
    PROVISION_ASK = "provision.external.ask": "An external provisioner makes the class's volumes: the claim is annotated with its name.";
    PROVISION_WAIT = "provision.external.wait": "The external provisioner was asked: its volume is awaited.";
    PROVISION_DATA_SOURCE = "provision.in-tree.data-source": "The claim is to be filled from a source, which only CSI drivers can do.";
    PROVISION_ANNOUNCE = "provision.in-tree.announce": "The claim is annotated with who makes its volume.";
    PROVISION_LOOK = "provision.in-tree.look": "A live read must show that the claim's volume was not made before, or was not saved after all.";
    PROVISION_EXISTS = "provision.in-tree.exists": "The claim's volume was made before: it is awaited.";
    PROVISION_MOUNT_OPTIONS = "provision.in-tree.mount-options": "The class has mount options and the provisioner cannot set any.";
    PROVISION_REFUSED = "provision.in-tree.refused": "The provisioner cannot serve this claim, or is switched off.";
    PROVISION_NODE_MISSING = "provision.in-tree.node-missing": "The node that a scheduler selected does not exist.";
    PROVISION_MAKE = "provision.in-tree.make": "Storage is made for the claim.";
    PROVISION_RESCHEDULE = "provision.in-tree.reschedule": "No storage could be made on the selected node: the scheduler is asked for another.";
    PROVISION_FAILED = "provision.in-tree.failed": "No storage could be made: it is tried again later.";
    PROVISION_SAVE = "provision.in-tree.save": "The storage was made: its volume is created, belonging to the claim from the start.";
    PROVISION_SAVE_AGAIN = "provision.in-tree.save-again": "The volume could not be created: it is tried again in a while.";
    PROVISION_SAVED = "provision.in-tree.saved": "The volume was created: it is awaited.";
    PROVISION_CLEAN_UP = "provision.in-tree.clean-up": "The volume could not be created after several attempts: its storage is removed.";
    PROVISION_CLEAN_UP_AGAIN = "provision.in-tree.clean-up-again": "The storage made in vain could not be removed: it is tried again in a while.";
    PROVISION_ORPHANED = "provision.in-tree.orphaned": "The storage made in vain could not be removed after several attempts: it is used when provisioning begins anew later, and left to a person if the claim goes.";
    PROVISION_CLEANED = "provision.in-tree.cleaned": "The storage made in vain was removed: provisioning begins anew later.";

    // === Any volume ===
    VOLUME_GONE = "volume.gone": "The volume does not exist: there is nothing to do for it.";
    VOLUME_MALFORMED = "volume.malformed": "A field of the volume cannot be understood: it is left alone until that is mended.";
    VOLUME_MIGRATION = "volume.migration": "The volume's plugin has moved to a CSI driver, or back: its migrated-to annotation and its finalizers are brought in line first.";
    VOLUME_WANTED = "volume.unclaimed.wanted": "The volume is free and a claim waits for one like it: that claim is decided about first.";
    VOLUME_UNCLAIMED = "volume.unclaimed": "The volume belongs to nobody: it is Available.";
    VOLUME_EXPECTED = "volume.reserved.expected": "The volume is reserved for a claim that exists: that claim is decided about first.";
    VOLUME_RESERVED = "volume.reserved": "The volume is reserved for a claim by name: it is Available until the claim takes it.";
    VOLUME_LOOKS_FOR_CLAIM = "volume.claimed.looks-for-claim": "The volume's claim seems to be gone: a live read must show it before the volume is released.";
    VOLUME_CLAIM_UNREADABLE = "volume.claimed.unreadable": "A field of the volume's claim cannot be understood: nothing is done until that is mended.";
    VOLUME_MODE_MISMATCH = "volume.claimed.mode-mismatch": "The volume belongs to a claim that wants another volume mode: they are not bound.";
    VOLUME_WAITS_FOR_CLAIM = "volume.claimed.waits-for-claim": "The volume belongs to a claim that does not point at it yet: the claim's side completes the bind.";
    VOLUME_BOUND = "volume.claimed.bound": "The volume belongs to a claim that points at it: it is Bound.";
    VOLUME_UNNEEDED = "volume.claimed.unneeded": "The volume was made for a claim that is bound to another: it is released.";
    VOLUME_UNBIND = "volume.claimed.unbind": "The volume belongs to a claim that is bound to another: it is set free, or reserved by name as it was.";
    VOLUME_RELEASE = "volume.released": "The volume's claim does not exist any more: it is Released.";

    // === Reclaiming ===
    RECLAIM_MIGRATED = "reclaim.migrated": "The volume's CSI driver reclaims it.";
    RECLAIM_RETAIN = "reclaim.retain": "The volume is retained: a person decides what becomes of it.";
    RECLAIM_UNKNOWN_POLICY = "reclaim.unknown-policy": "The volume's reclaim policy is none that is known: nothing is done to it.";
    RECLAIM_PROVE = "reclaim.prove": "Live reads of the volume and its claim must show that nothing is lost.";
    RECLAIM_NOT_RELEASED = "reclaim.not-released": "A live read shows that the volume changed, or that its claim lives: nothing is done to it.";
    DELETE_EXTERNAL = "reclaim.delete.external": "An external provisioner deletes the volume.";
    DELETE_NO_PLUGIN = "reclaim.delete.no-plugin": "No plugin can delete what lies behind the volume.";
    DELETE_STORAGE = "reclaim.delete.storage": "What lies behind the volume is deleted.";
    DELETE_IN_USE = "reclaim.delete.in-use": "What lies behind the volume is still in use: it is tried again later.";
    DELETE_FAILED = "reclaim.delete.failed": "What lies behind the volume could not be deleted: it is tried again later.";
    DELETE_VOLUME = "reclaim.delete.volume": "What lies behind the volume is gone: the volume is deleted.";
    DELETE_FINALIZER = "reclaim.delete.finalizer": "What lies behind the volume is gone and the volume is deleted: the finalizer that guarded it is removed.";
    RECYCLE_IN_USE = "reclaim.recycle.in-use": "Pods still use the volume: it is not scrubbed under them.";
    RECYCLE_NO_PLUGIN = "reclaim.recycle.no-plugin": "No plugin can scrub the volume.";
    RECYCLE_SCRUB = "reclaim.recycle.scrub": "The volume is scrubbed by a pod.";
    RECYCLE_FAILED = "reclaim.recycle.failed": "The volume could not be scrubbed: it is tried again later.";
    RECYCLE_DONE = "reclaim.recycle.done": "The volume was scrubbed: it is offered again.";
}
