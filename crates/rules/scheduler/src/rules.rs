//! Every rule of the scheduler: a name that never changes, and a sentence of why. docs/rules.md is made from this.

bindery_rules_api::rules! {
    NOT_OURS = "schedule.not-ours": "Only pods are given nodes here, and only those that name this scheduler.";
    POD_GONE = "schedule.pod-gone": "The pod does not exist: there is nothing to place.";
    POD_MALFORMED = "schedule.pod-malformed": "A field of the pod cannot be understood: it is not placed until that is mended.";
    PLACED = "schedule.placed": "The pod has its node, for good.";
    OVER = "schedule.over": "The pod has ended, or somebody deleted it: it needs no node any more.";
    GATED = "schedule.gated": "Somebody holds the pod back by a scheduling gate: it is placed when the last gate is gone.";
    AFTER_ANOTHER = "schedule.after-another": "A pod that matters more, or as much and has waited longer, was not looked at yet: it goes first.";
    DEVICES = "schedule.devices": "The pod asks for devices by resource claims, which nobody here allocates: on any node it would wait for them in vain, so that it is left to another scheduler.";
    NO_NODES = "schedule.no-nodes": "There is no node at all.";
    REFUSED = "schedule.refused": "The pod's volumes keep it from every node: a claim is missing, not bound, lost or another's.";
    UNSCHEDULABLE = "schedule.unschedulable": "No node will do: it is said for how many nodes which reason holds, and the pod is looked at again when one of them changes.";
    FAULT = "schedule.fault": "It cannot be said whether a node will do, because something makes no sense: it is looked at again when that is mended.";
    ELSEWHERE = "schedule.elsewhere": "Making a volume on the node that was meant for the pod has failed: another node is tried, or after a pause the same.";
    VOLUMES = "schedule.volumes": "A node is meant for the pod: its volumes are reserved for the pod's claims, or are asked to be made there.";
    NOMINATE = "schedule.nominate": "A node will do, and the pod's volumes are to be made ready there: the node is written on the pod, so that others leave room for it and a restart goes on with it.";
    WAITS_FOR_VOLUMES = "schedule.waits-for-volumes": "All is written: the pod gets its node when its claims are bound.";
    BIND = "schedule.bind": "A node will do and the pod's claims are bound: the pod is given its node.";
}
