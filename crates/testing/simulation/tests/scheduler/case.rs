//! A case of the scheduler's tables.

use bindery_binder::{Binder, Config};
use bindery_model::{ClaimKey, Kind, Name, ObjectKey, PodKey};
use bindery_rules_api::RuleSet;
use bindery_scheduler::Scheduler;
use bindery_simulation::run::lifecycle_controllers;
use bindery_simulation::{SimulatedCluster, notation, provisioner, table};

/// Rule sets, as often as there is a new engine.
pub type Rules = fn() -> Vec<Box<dyn RuleSet + Send>>;

/// A case in which all of them decide.
pub type Case = table::Case<Rules>;

fn everyone() -> Vec<Box<dyn RuleSet + Send>> {
    let deciding: [Box<dyn RuleSet + Send>; 2] =
        [Box::new(Scheduler::default()), Box::new(Binder::new(Config::default()))];
    deciding.into_iter().chain(lifecycle_controllers()).collect()
}

/// A case in which only the end counts.
pub fn case(name: &'static str) -> Case {
    Case::new(name, None, everyone as Rules).with_two_leaders()
}

/// The annotation that says for which node a volume is to be made.
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

/// Puts objects in the place of others, or of earlier states of themselves.
pub fn put(cluster: &mut SimulatedCluster, lines: &str) {
    notation::add(cluster, lines);
}

/// The external provisioner makes every volume that it is claim for, for the node that was selected.
pub fn provision(cluster: &mut SimulatedCluster) {
    for claim in provisioner::pending(cluster) {
        provisioner::provision(cluster, &claim, &format!("made-{}-{}", claim.claim.name, claim.node));
    }
}

/// The external provisioner cannot make a volume that it is claim for: it takes the node away from the claim.
pub fn fail(cluster: &mut SimulatedCluster) {
    for claim in provisioner::pending(cluster) {
        provisioner::reject(cluster, &claim);
    }
}
