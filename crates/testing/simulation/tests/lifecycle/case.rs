//! Table cases of the lifecycle controllers.

use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::{ClaimKey, Kind, Name, ObjectKey, PodKey};
use bindery_rules_api::RuleSet;
use bindery_simulation::{SimulatedCluster, notation, table};

/// Creates the rule sets of a new engine.
pub type Rules = fn() -> Vec<Box<dyn RuleSet + Send>>;

/// A case of lifecycle controllers.
pub type Case = table::Case<Rules>;

/// All lifecycle controllers.
pub fn all_controllers() -> Vec<Box<dyn RuleSet + Send>> {
    vec![
        Box::new(Ephemeral),
        Box::new(ClaimProtection::default()),
        Box::new(VolumeProtection),
        Box::new(AttributesClassProtection),
        Box::new(Expander),
    ]
}

fn case(name: &'static str, sync: Option<ObjectKey>, rules: Rules) -> Case {
    Case::new(name, sync, rules).with_two_leaders()
}

/// A case of the ephemeral volume controller, which syncs a pod of the default namespace.
pub fn pod(name: &'static str, pod: &str) -> Case {
    case(name, Some(pod_key(pod)), || vec![Box::new(Ephemeral)])
}

/// A case of claim protection, without the `Unused` condition.
pub fn protected(name: &'static str) -> Case {
    case(name, None, || vec![Box::new(ClaimProtection { reports_unused: false })])
}

/// A case of claim protection, with the `Unused` condition.
pub fn reported(name: &'static str) -> Case {
    case(name, None, || vec![Box::new(ClaimProtection::default())])
}

/// A case of volume protection, which syncs a volume.
pub fn volume(name: &'static str, volume: &str) -> Case {
    case(name, Some(ObjectKey::volume(volume)), || vec![Box::new(VolumeProtection)])
}

/// A case of attributes-class protection.
pub fn attributes_class(name: &'static str) -> Case {
    case(name, None, || vec![Box::new(AttributesClassProtection)])
}

/// A case of the expand controller, which syncs a claim of the default namespace.
pub fn grown(name: &'static str, claim: &str) -> Case {
    case(name, Some(claim_key(claim)), || vec![Box::new(Expander)])
}

/// A case of all lifecycle controllers, of which only the final state is checked.
pub fn together(name: &'static str) -> Case {
    case(name, None, all_controllers)
}

/// The key of a claim in the default namespace.
pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

/// The key of a pod in the default namespace.
pub fn pod_key(name: &str) -> ObjectKey {
    PodKey { namespace: "default".into(), name: name.into() }.into()
}

/// The key of an attributes class.
pub fn attributes_class_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::AttributesClass, Name::from(name))
}

/// Creates or replaces an object.
pub fn put(cluster: &mut SimulatedCluster, line: &str) {
    notation::add(cluster, line);
}
