//! The rules of the scheduler. Their names are stable; docs/rules.md is generated from this.

bindery_rules_api::rules! {
    NOT_OURS = "schedule.not-ours": "This scheduler handles only pods whose spec.schedulerName is its own name. The object is left alone.";
    POD_GONE = "schedule.pod-gone": "The pod does not exist, so there is nothing to schedule.";
    POD_MALFORMED = "schedule.pod-malformed": "A field of the pod cannot be parsed. The pod is not scheduled until it is fixed.";
    ASSIGNED = "schedule.assigned": "The pod is assigned to a node, which never changes.";
    FINISHED = "schedule.finished": "The pod has finished or is being deleted, so it needs no node.";
    GATED = "schedule.gated": "The pod has scheduling gates. It is scheduled when the last one is removed.";
    AFTER_ANOTHER = "schedule.after-another": "A pod with higher priority, or of equal priority and older, was not attempted yet. That pod is scheduled first.";
    RESOURCE_CLAIMS = "schedule.resource-claims": "The pod has resource claims (dynamic resource allocation), which this scheduler does not allocate. The pod stays Pending; set spec.schedulerName to a scheduler that does.";
    NO_NODES = "schedule.no-nodes": "The cluster has no nodes.";
    WAITS_FOR_EPHEMERAL_CLAIM = "schedule.waits-for-ephemeral-claim": "The claim of one of the pod's ephemeral volumes does not exist yet. The pod is scheduled when the ephemeral volume controller has created it.";
    CLAIMS_REJECTED = "schedule.claims-rejected": "A claim of the pod is missing, unbound, lost, being deleted or owned by another pod. The pod cannot run on any node until that changes.";
    UNSCHEDULABLE = "schedule.unschedulable": "No node is suitable. The reasons are published with the number of nodes they apply to, and the pod is retried when one of them changes.";
    CANNOT_EVALUATE = "schedule.cannot-evaluate": "Whether a node is suitable cannot be determined, because an object is invalid. The pod is retried when that object changes.";
    PROVISIONING_FAILED = "schedule.provisioning-failed": "Provisioning a volume on the pod's nominated node failed. Another node is tried, or the same one after a pause.";
    BIND_VOLUMES = "schedule.bind-volumes": "The pod has a nominated node. Volumes are reserved for its claims there, or provisioning is requested.";
    NOMINATE = "schedule.nominate": "A node is suitable, and the pod's volumes must be bound there first. The node is written to status.nominatedNodeName, so that its resources are reserved and a restart continues with it.";
    WAITS_FOR_VOLUMES = "schedule.waits-for-volumes": "Volumes are reserved or requested for all claims of the pod. The pod is assigned to its node when the claims are bound.";
    BIND = "schedule.bind": "A node is suitable and the pod's claims are bound: the pod is assigned to the node.";
}
