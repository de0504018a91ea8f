//! Every rule of a provisioner: a name that never changes, and a sentence of why. docs/rules.md is made from this.

bindery_rules_api::rules! {
    NOT_OURS = "provision.not-ours": "Only claims and volumes are looked at here.";
    CLAIM_GONE = "provision.claim.gone": "The claim does not exist: nothing is made for it.";
    CLAIM_MALFORMED = "provision.claim.malformed": "A field of the claim cannot be understood: nothing is made for it until that is mended.";
    HAS_VOLUME = "provision.claim.has-volume": "The claim names a volume: none is made for it.";
    NOT_ASKED = "provision.claim.not-asked": "NoObserver has asked a provisioner to make a volume for the claim, or another was asked.";
    CLASS_MISSING = "provision.claim.class-missing": "The claim's class does not exist: once it does, the claim is looked at again.";
    CLASS_OTHERS = "provision.claim.class-others": "Another provisioner makes the volumes of the claim's class.";
    WAITS_FOR_NODE = "provision.claim.waits-for-node": "Volumes of this class are made where a pod will run, and no node was chosen yet.";
    NO_BLOCK = "provision.claim.no-block": "The claim wants a block device, and the storage has none.";
    NAME_TAKEN = "provision.claim.name-taken": "A volume of the name that this claim's would have belongs to another claim: nothing is made.";
    GOING = "provision.claim.volume-going": "The volume that was made for the claim is being deleted: another is made once it is gone.";
    PREPARE = "provision.claim.prepare": "What to ask the storage for is found out first: nothing is made by that.";
    STALE = "provision.claim.stale": "What was found out was for another node, or for another claim of that name: it is found out again.";
    INTEND = "provision.claim.intend": "That storage will be asked for is put down on the claim before it is, so that no crash leaves storage that nobody knows of.";
    INTEND_AGAIN = "provision.claim.intend-again": "Storage was asked for before, and nobody knows what became of it: that it is asked for again is put down first, so that nobody takes the intent off on the grounds of what was known before.";
    MAKE = "provision.claim.make": "The storage is asked to make a volume. Asked again, it is asked for just the same, and makes no second.";
    SAVE = "provision.claim.save": "The storage has made it: the volume is created, tied to its claim.";
    SAVE_FAILED = "provision.claim.save-failed": "The volume could not be created: it is tried again, and what was made is kept meanwhile.";
    CHECK = "provision.claim.check": "There was a volume of that name already: it is read live before it is taken for this claim's.";
    UNMAKE = "provision.claim.unmake": "There is a volume of that name with other storage behind it: what was made in vain is removed.";
    UNMAKE_FAILED = "provision.claim.unmake-failed": "What was made in vain could not be removed: it is tried again.";
    UNMADE = "provision.claim.unmade": "What was made in vain is removed: it is begun anew later.";
    PROVISIONED = "provision.claim.provisioned": "The claim's volume exists: the claim need not be watched over any more.";
    FAILED = "provision.claim.failed": "The storage said no, and nothing was made: it is asked again, less and less often.";
    UNCERTAIN = "provision.claim.uncertain": "The storage did not answer, or is not ready yet: nobody knows what it made, and it is asked for the same again.";
    UNTRIED = "provision.claim.untried": "The storage could not even be asked: it is tried again, and what was known of it still holds.";
    OVERTAKEN = "provision.claim.overtaken": "Somebody else has put down an intent since the storage was asked: what it answered is not all there is to know, and it is asked again.";
    OTHERWISE = "provision.claim.otherwise": "There is something under the volume's name that was asked for otherwise, by the class as it was then: it is not forgotten, and is had once the class asks for the same again.";
    HOPELESS = "provision.claim.hopeless": "The storage said that it will never make such a volume: it is asked again, but seldom.";
    OTHERS = "provision.claim.others": "The volume is somebody else's to make: a populator's, or a provisioner's on another node.";
    ELSEWHERE = "provision.claim.elsewhere": "There is nothing to be had on the node that was chosen, and nothing was made: a scheduler is asked for another.";
    RELEASE_SOURCE = "provision.claim.release-source": "Somebody deleted the claim, and no other is being filled from it any more: it may go.";
    SOURCE_NEEDED = "provision.claim.source-needed": "Somebody deleted the claim, and another is being filled from it: it stays until that is done.";

    VOLUME_GONE = "provision.volume.gone": "The volume does not exist.";
    VOLUME_MALFORMED = "provision.volume.malformed": "A field of the volume cannot be understood: nothing is done to it until that is mended.";
    VOLUME_OTHERS = "provision.volume.others": "The volume is another provisioner's.";
    GUARD = "provision.volume.guard": "The volume is guarded by a finalizer, so that it does not go before what lies behind it.";
    UNGUARD = "provision.volume.remove_finalizer": "The volume's policy is not to delete: nothing of it is guarded.";
    KEPT = "provision.volume.kept": "The volume is not released, or its policy is not to delete: what lies behind it stays.";
    PROVE = "provision.volume.prove": "Before anything is removed, the volume, its claim and what it is attached to are read live.";
    NOT_RELEASED = "provision.volume.not-released": "A live read shows that the volume may still be used, or has changed: what lies behind it stays.";
    ATTACHED = "provision.volume.attached": "The volume is attached to a node: what lies behind it is removed once it is not.";
    REMOVE = "provision.volume.remove": "Live reads show that nobody has the volume: what lies behind it is removed.";
    REMOVE_FAILED = "provision.volume.remove-failed": "What lies behind the volume could not be removed: it is tried again, less and less often.";
    REMOVE_OTHERS = "provision.volume.remove-others": "What lies behind the volume is somebody else's to remove: a provisioner's on another node.";
    DELETE = "provision.volume.delete": "What lies behind the volume is gone: so may the volume be.";
    LET_GO = "provision.volume.let-go": "What lies behind the volume is gone, and somebody deleted it: it is not held back any more.";
}
