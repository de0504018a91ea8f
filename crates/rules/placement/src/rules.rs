//! The rules of placement, as reported for its writes.

use bindery_rules_api::rules;

rules! {
    BIND_RESERVE = "placement.bind.reserve-volume": "The pod's node is chosen and a matching volume is available there: the volume is reserved for the claim, and the binder completes the binding.";
    BIND_SELECT_NODE = "placement.bind.select-node": "The pod's node is chosen and no available volume matches the claim: the claim is annotated with the node, so that its provisioner creates a volume there.";
}
