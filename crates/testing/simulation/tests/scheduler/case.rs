//! Table cases of the scheduler.

use bindery_binder::{Binder, Config};
use bindery_model::{ClaimKey, Kind, Name, ObjectKey, PodKey};
use bindery_rules_api::RuleSet;
use bindery_scheduler::Scheduler;
use bindery_simulation::run::lifecycle_controllers;
use bindery_simulation::{SimulatedCluster, notation, provisioner, table};

/// Creates the rule sets of a new engine.
pub type Rules = fn() -> Vec<Box<dyn RuleSet + Send>>;

/// A case with scheduler, binder and lifecycle controllers.
pub type Case = table::Case<Rules>;

/// Scheduler, binder and lifecycle controllers.
pub fn all_rule_sets() -> Vec<Box<dyn RuleSet + Send>> {
    let deciding: [Box<dyn RuleSet + Send>; 2] =
        [Box::new(Scheduler::default()), Box::new(Binder::new(Config::default()))];
    deciding.into_iter().chain(lifecycle_controllers()).collect()
}

/// A case of which only the final state is checked.
pub fn case(name: &'static str) -> Case {
    Case::new(name, None, all_rule_sets as Rules).with_two_leaders()
}

/// The annotation with the node that a volume is provisioned for.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The key of a claim in the default namespace.
pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

/// The key of a pod in the default namespace.
pub fn pod_key(name: &str) -> ObjectKey {
    PodKey { namespace: "default".into(), name: name.into() }.into()
}

/// The key of a node.
pub fn node_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Node, Name::from(name))
}

/// Creates or replaces objects.
pub fn put(cluster: &mut SimulatedCluster, lines: &str) {
    notation::add(cluster, lines);
}

/// The external provisioner creates all pending volumes, for the selected nodes.
pub fn provision(cluster: &mut SimulatedCluster) {
    for claim in provisioner::pending(cluster) {
        provisioner::provision(cluster, &claim, &format!("made-{}-{}", claim.claim.name, claim.node));
    }
}

/// The external provisioner fails for all pending claims, and removes their selected nodes.
pub fn fail(cluster: &mut SimulatedCluster) {
    for claim in provisioner::pending(cluster) {
        provisioner::reject(cluster, &claim);
    }
}
