//! Every rule of the companions: a name that never changes, and a sentence of why. docs/rules.md is made from this.

/// The ephemeral-volume controller's.
pub mod ephemeral {
    bindery_rules_api::rules! {
        NOT_OURS = "ephemeral.not-ours": "Only pods have ephemeral volumes.";
        POD_GONE = "ephemeral.pod-gone": "The pod does not exist: no claim is made for it.";
        POD_MALFORMED = "ephemeral.pod-malformed": "A field of the pod cannot be understood: no claim is made for it until that is mended.";
        POD_DELETED = "ephemeral.pod-deleted": "Somebody deleted the pod: no claim is made for it any more.";
        NO_VOLUMES = "ephemeral.no-volumes": "The pod has no ephemeral volume.";
        SERVED = "ephemeral.served": "Every ephemeral volume of the pod has its claim.";
        MAKE_CLAIM = "ephemeral.make-claim": "An ephemeral volume of the pod has no claim: one is made from its template, owned by the pod.";
        CHECK_CLAIM = "ephemeral.check-claim": "The claim was made by somebody meanwhile, or nobody knows whether it was: it is read live before anything is said.";
        CONFLICT = "ephemeral.conflict": "A claim of that name was not made for this pod: it is left alone, and the pod waits until it is gone.";
        FAILED = "ephemeral.failed": "The claim could not be made: it is tried again, less and less often.";
    }
}

/// The claim-protection controller's.
pub mod claim_protection {
    bindery_rules_api::rules! {
        NOT_OURS = "protection.claim.not-ours": "Only claims are protected here.";
        GONE = "protection.claim.gone": "The claim does not exist: there is nothing to protect.";
        MALFORMED = "protection.claim.malformed": "A field of the claim cannot be understood: it is neither guarded nor let go until that is mended.";
        GUARD = "protection.claim.guard": "The claim is guarded by a finalizer, so that it does not go while pods use it.";
        HELD = "protection.claim.held": "Somebody deleted the claim, and pods that have a node use it: it stays until they are gone.";
        LOOK = "protection.claim.look": "No pod that is known uses the claim: all pods of its namespace are listed live before it is called unused.";
        LET_GO = "protection.claim.let-go": "Somebody deleted the claim, and a live list shows that no pod uses it: it may go.";
        USED = "protection.claim.used": "A pod refers to the claim: its condition says so.";
        UNUSED = "protection.claim.unused": "A live list shows that no pod refers to the claim: its condition says so, and since when.";
        AT_REST = "protection.claim.at-rest": "The claim is guarded and nobody wants it gone, or somebody does, and it is not held back here any more.";
    }
}

/// The volume-protection controller's.
pub mod volume_protection {
    bindery_rules_api::rules! {
        NOT_OURS = "protection.volume.not-ours": "Only volumes are protected here.";
        GONE = "protection.volume.gone": "The volume does not exist: there is nothing to protect.";
        MALFORMED = "protection.volume.malformed": "A field of the volume cannot be understood: it is neither guarded nor let go until that is mended.";
        GUARD = "protection.volume.guard": "The volume is guarded by a finalizer, so that it does not go while it is bound.";
        HELD = "protection.volume.held": "Somebody deleted the volume, and it is bound to a claim: it stays until the claim is gone.";
        LET_GO = "protection.volume.let-go": "Somebody deleted the volume, and it is not bound: it may go.";
        AT_REST = "protection.volume.at-rest": "The volume is guarded and nobody wants it gone, or somebody does, and it is not held back here any more.";
    }
}

/// The attributes-class-protection controller's.
pub mod attributes_class_protection {
    bindery_rules_api::rules! {
        NOT_OURS = "protection.attributes-class.not-ours": "Only attributes classes are protected here.";
        GONE = "protection.attributes-class.gone": "The attributes class does not exist: there is nothing to protect.";
        MALFORMED = "protection.attributes-class.malformed": "A field of the attributes class cannot be understood: it is neither guarded nor let go until that is mended.";
        GUARD = "protection.attributes-class.guard": "The attributes class is guarded by a finalizer, so that it does not go while claims or volumes refer to it.";
        HELD = "protection.attributes-class.held": "Somebody deleted the attributes class, and claims or volumes refer to it: it stays until they do not.";
        LOOK = "protection.attributes-class.look": "Nothing that is known refers to the attributes class: claims and volumes are listed live before it is called unused.";
        LET_GO = "protection.attributes-class.let-go": "Somebody deleted the attributes class, and live lists show that nothing refers to it: it may go.";
        AT_REST = "protection.attributes-class.at-rest": "The attributes class is guarded and nobody wants it gone, or somebody does, and it is not held back here any more.";
    }
}

/// The expander's.
pub mod expander {
    bindery_rules_api::rules! {
        NOT_OURS = "expansion.not-ours": "Only claims are made to grow.";
        CLAIM_GONE = "expansion.claim-gone": "The claim does not exist: nothing grows.";
        MALFORMED = "expansion.malformed": "A field of the claim or of its volume cannot be understood: nothing grows until that is mended.";
        NOT_BOUND = "expansion.not-bound": "The claim is not bound: it has nothing that could grow.";
        NOT_ITS_VOLUME = "expansion.not-its-volume": "The volume that the claim names is not there, or not the claim's: nothing grows.";
        BIG_ENOUGH = "expansion.big-enough": "The claim has what it asks for.";
        WAITS = "expansion.waits": "The claim asks for more than it has: an external resizer makes its volume grow.";
        MIGRATED = "expansion.migrated": "The claim asks for more than it has, and its in-tree plugin has moved to a CSI driver: the driver's resizer is named on the claim, and makes its volume grow.";
        FLEX_BEGIN = "expansion.flex.begin": "The claim asks for more of its Flex volume: that it grows, and to which size, is written down first.";
        FLEX_GROW = "expansion.flex.grow": "The Flex volume is said to have the size that was written down: its driver makes it so when it is next mounted.";
        FLEX_PENDING = "expansion.flex.pending": "The file system on the Flex volume has yet to grow: that happens on a node, and is said on the claim.";
        FLEX_REMEMBER = "expansion.flex.remember": "What the claim had before is written on the Flex volume, so that its node can go on if the claim is deleted.";
        FLEX_ON_NODE = "expansion.flex.on-node": "The Flex volume has its new size: its node does the rest.";
        FLEX_FINISH = "expansion.flex.finish": "The Flex volume is a block device and has its new size: the claim has what it asks for.";
        FLEX_FORGET = "expansion.flex.forget": "The node is done: what the claim had before is removed from the Flex volume.";
    }
}

/// Every rule of every companion.
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
