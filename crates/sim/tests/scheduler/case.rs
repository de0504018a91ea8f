//! A case of the scheduler's tables.

use bindery_binder::{Binder, Config};
use bindery_scheduler::Scheduler;
use bindery_sim::run::companions;
use bindery_sim::{World, notation, table};
use bindery_verdict::RuleSet;
use bindery_volumes::{Annotation, ClaimKey, Kind, Name, ObjectKey, PodKey};
use serde_json::{Value, json};

/// Rule sets, as often as there is a new engine.
pub type Rules = fn() -> Vec<Box<dyn RuleSet + Send>>;

/// A case in which all of them decide.
pub type Case = table::Case<Rules>;

fn everyone() -> Vec<Box<dyn RuleSet + Send>> {
    let deciding: [Box<dyn RuleSet + Send>; 2] =
        [Box::new(Scheduler::default()), Box::new(Binder::new(Config::default()))];
    deciding.into_iter().chain(companions()).collect()
}

/// A case in which only the end counts.
pub fn case(name: &'static str) -> Case {
    Case::new(name, None, everyone as Rules).for_two()
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
pub fn put(world: &mut World, lines: &str) {
    notation::add(world, lines);
}

/// What a claim has of an annotation.
fn note(claim: &Value, annotation: Annotation) -> Option<&str> {
    claim["metadata"]["annotations"][annotation.key()].as_str()
}

/// The claims that an external provisioner is to make a volume for, and the nodes where.
fn asked(world: &World) -> Vec<(ObjectKey, Value, String)> {
    let claims =
        world.objects().filter(|(key, claim)| key.kind == Kind::Claim && claim["spec"]["volumeName"].is_null());
    let asked = claims.filter(|(_, claim)| note(claim, Annotation::StorageProvisioner).is_some());
    let asked = asked.filter_map(|(key, claim)| {
        let node = note(claim, Annotation::SelectedNode)?.to_owned();
        Some((key.clone(), claim.clone(), node))
    });
    asked.collect()
}

/// The external provisioner makes every volume that it is asked for, for the node that was selected.
pub fn provision(world: &mut World) {
    for (key, claim, node) in asked(world) {
        let (name, uid) = (&key.name, claim["metadata"]["uid"].as_str().expect("a claim has a UID"));
        let class = claim["spec"]["storageClassName"].as_str().expect("a class");
        let size = claim["spec"]["resources"]["requests"]["storage"].as_str().expect("a size");
        let volume = format!(
            "pv made-{name}-{node} {size} Pending ->{name}#{uid} class={class} policy=Delete source=csi:example.com \
             by=example.com on={node}"
        );
        put(world, &volume);
    }
}

/// The external provisioner cannot make a volume that it is asked for: it takes the node away from the claim.
pub fn fail(world: &mut World) {
    for (key, _, _) in asked(world) {
        world.edit(&key, json!({"metadata": {"annotations": {SELECTED_NODE: null}}}));
    }
}
