//! Every rule of placement: a name that never changes, and a sentence of why.

use bindery_rules_api::rules;

rules! {
    // === The pod cannot be placed on any node, as things stand ===
    POD_CLAIM_MISSING = "placement.pod.claim-missing": "The pod uses a claim that does not exist: it waits until it does.";
    POD_EPHEMERAL_MISSING = "placement.pod.ephemeral-missing": "The claim for one of the pod's ephemeral volumes was not made yet: it is awaited.";
    POD_CLAIM_MALFORMED = "placement.pod.claim-malformed": "A field of a claim that the pod uses cannot be understood: the pod waits until that is mended.";
    POD_CLAIM_LOST = "placement.pod.claim-lost": "A claim that the pod uses has lost its volume.";
    POD_CLAIM_DELETING = "placement.pod.claim-deleting": "A claim that the pod uses is being deleted: it gets no new users.";
    POD_CLAIM_OF_ANOTHER = "placement.pod.claim-of-another": "The claim with the name of one of the pod's ephemeral volumes was not made for this pod.";
    POD_CLAIM_UNBOUND = "placement.pod.claim-unbound": "A claim that the pod uses is bound without regard to pods, and is not bound yet.";
    POD_CLASS_UNCLEAR = "placement.pod.class-unclear": "The class of a claim that the pod uses does not say when its claims are bound.";
    POD_CLASS_MISSING = "placement.pod.class-missing": "The class of an unbound claim that the pod uses does not exist.";
    POD_NO_CLASS = "placement.pod.no-class": "An unbound claim that the pod uses has no class, so its zone cannot be known.";
    POD_VOLUME_MISSING = "placement.pod.volume-missing": "A claim that the pod uses is bound to a volume that does not exist, so its zone cannot be known.";

    // === A node cannot serve the pod ===
    NODE_UNREACHABLE = "placement.node.volume-unreachable": "A volume that one of the pod's claims is bound to cannot be reached from the node.";
    NODE_NOTHING_TO_BIND = "placement.node.nothing-to-bind": "For one of the pod's claims no free volume can be reached from the node, and none can be made there.";
    NODE_NO_ROOM = "placement.node.no-room": "A volume could be made for one of the pod's claims, but there is no room for it that the node can reach.";
    NODE_VOLUME_MISSING = "placement.node.volume-missing": "One of the pod's claims is bound to a volume that does not exist.";
    NODE_OTHER_ZONE = "placement.node.other-zone": "A volume of the pod is in a zone or region in which the node is not.";
    NODE_DISK_IN_USE = "placement.node.disk-in-use": "A pod on the node uses the same disk, and they cannot share it.";
    NODE_CLAIM_IN_USE = "placement.node.claim-in-use": "One of the pod's claims is for one pod only, and another pod uses it.";
    NODE_TOO_MANY_VOLUMES = "placement.node.too-many-volumes": "With the pod's volumes the node would have more of a driver than it can have.";
    NODE_DRIVER_MISSING = "placement.node.driver-missing": "The driver of one of the pod's volumes is not installed on the node, and demands to be.";

    // === It cannot be said whether a node can serve the pod ===
    FAULT_SELECTOR = "placement.fault.selector": "The selector of one of the pod's claims makes no sense: no volume can be chosen by it.";
    FAULT_TRANSLATION = "placement.fault.translation": "A volume's driver has moved to CSI on the node, and the volume cannot be translated.";

    // === Binding the pod's claims for the node that was chosen ===
    BIND_RESERVE = "placement.bind.reserve-volume": "The volume that was found for the claim is pointed at it: the binder does the rest.";
    BIND_SELECT_NODE = "placement.bind.select-node": "The claim is annotated with the node: a volume is made for it there.";
    BIND_WAITS = "placement.bind.waits": "What was written is awaited to take effect: all of the pod's claims must be bound.";
    BIND_DONE = "placement.bind.done": "All of the pod's claims are bound: it can be given its node.";
    BIND_POD_GONE = "placement.bind.pod-gone": "The pod does not exist any more.";
    BIND_NODE_GONE = "placement.bind.node-gone": "The node that was chosen does not exist any more.";
    BIND_GONE = "placement.bind.gone": "A claim or a volume that was to be bound does not exist any more.";
    BIND_UNREACHABLE = "placement.bind.unreachable": "The volume of a claim cannot be reached from the node that was chosen.";
    BIND_RESET = "placement.bind.reset": "The volume that was pointed at a claim does not point at it any more.";
    BIND_ELSEWHERE = "placement.bind.elsewhere": "The claim was bound to another volume than the one that was found for it.";
    BIND_PROVISIONING_FAILED = "placement.bind.provisioning-failed": "The claim's node was taken away from it: its volume could not be made there.";
    BIND_TRANSLATION = "placement.bind.translation": "A volume's driver has moved to CSI on the node, and the volume cannot be translated.";
    BIND_OUTDATED = "placement.bind.outdated": "What was found has changed since it was looked at: it is looked at again.";
}
