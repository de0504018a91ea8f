//! Every rule about local disks: a name that never changes, and a sentence of why. docs/rules.md is made from this.

/// What is offered, and what is not.
pub mod discovery {
    bindery_rules_api::rules! {
        CLASS_MISSING = "local.discovery.class-missing": "The storage class does not exist: nothing is offered under it until it does.";
        CLASS_MALFORMED = "local.discovery.class-malformed": "A field of the storage class cannot be understood: nothing is offered under it until that is mended.";
        CLASS_POLICY = "local.discovery.class-policy": "The storage class wants its volumes neither retained nor deleted: a local disk knows nothing else, and nothing is offered.";
        NODE_UNLABELLED = "local.discovery.node-unlabelled": "The node has no label with its host's name, by which volumes say where they are: nothing is offered until it has.";
        NOT_MEANT = "local.discovery.not-meant": "The name of the entry fits no pattern of the class: it is passed over.";
        UNREADABLE = "local.discovery.unreadable": "The entry cannot be looked at: it is not offered until it can.";
        STRANGE = "local.discovery.neither-directory-nor-device": "The entry is neither a directory nor a block device: it cannot be a volume.";
        OFFERED = "local.discovery.offered": "The entry has its volume already.";
        MODE_CHANGED = "local.discovery.device-became-directory": "The volume was made of a block device, and in its place there is a directory now: somebody has to look.";
        NAME_TAKEN = "local.discovery.name-taken": "A volume of the name that is to be given was made by somebody else: by another node of this name, if anybody. It has to go first.";
        PATH_TAKEN = "local.discovery.path-taken": "Another volume of this node has the same path: nothing is offered twice.";
        SAME_DISK = "local.discovery.same-disk": "Another entry is the very same disk under another name, and goes before: nothing is offered twice.";
        CLEANING = "local.discovery.being-cleaned": "The entry is being cleaned: it is offered once that is done.";
        DIRECTORY_FOR_BLOCK = "local.discovery.directory-for-block": "Block devices are to be offered, and this is a directory.";
        NOT_MOUNTED = "local.discovery.not-mounted": "The directory is no mount point: either its disk is not there yet, or it would take from a disk that is not its own.";
        NOT_EMPTY = "local.discovery.not-empty": "There is something on it, and the class wants only what is empty offered: whoever knows that it is not needed has to remove it.";
        OFFER = "local.discovery.offer": "NoObserver has it, and it is ready: a volume is made of it.";
    }
}

/// What is cleaned, and what is not.
pub mod cleaning {
    bindery_rules_api::rules! {
        NOT_LOCAL = "local.cleaning.not-local": "The volume is no local disk: there is nothing here to clean.";
        CLASS_UNKNOWN = "local.cleaning.class-unknown": "The volume's class is not configured here: where its disk is mounted is not known, so it is neither cleaned nor deleted.";
        OUTSIDE = "local.cleaning.outside": "The volume's path is not that of an entry of its class's directory: nothing is touched.";
        SHARED = "local.cleaning.shared": "Another volume of this node has the same path: what lies there may be its, and nothing is touched.";
        POLICY = "local.cleaning.policy": "The volume is released, and its policy is neither Retain nor Delete: a local disk knows nothing else, and it stays as it is.";
        CHANGED = "local.cleaning.changed": "Now that the disk is held, the volume is not what it was, or not released any more: nothing is touched.";
        CLEAN = "local.cleaning.clean": "NoObserver has the volume any more: what is on it is removed, and only then its object.";
    }
}

/// What goes with a node that is gone.
pub mod orphans {
    bindery_rules_api::rules! {
        NOT_CHOSEN = "local.gone-node.not-chosen": "The volume is not local, or its class was not chosen for cleaning up: it is passed over.";
        NO_NODE_NAMED = "local.gone-node.no-node-named": "The volume does not say by the host's name where it is: whether that is gone cannot be told.";
        NODE_LIVES = "local.gone-node.node-lives": "A node that the volume can be reached from is there.";
        CLAIM_GONE = "local.gone-node.claim-gone": "The volume's claim is gone, or another claim has its name: there is none to delete.";
        CLAIM_ELSEWHERE = "local.gone-node.claim-elsewhere": "The claim is bound to another volume: it is not deleted.";
        DELETE_CLAIM = "local.gone-node.delete-claim": "The claim's volume was on a node that is gone, and did not come back in time: the claim is deleted, so that its pod gets another.";
        DELETE_VOLUME = "local.gone-node.delete-volume": "The volume was on a node that is gone, and nobody has it: its object is deleted.";
        KEPT = "local.gone-node.kept": "The volume was on a node that is gone, and is in use, retained or on its way: it is left to a person, or to a later look.";
    }
}

/// Every rule about local disks.
pub fn all() -> impl Iterator<Item = &'static bindery_rules_api::Rule> {
    [discovery::ALL, cleaning::ALL, orphans::ALL].into_iter().flatten().copied()
}
