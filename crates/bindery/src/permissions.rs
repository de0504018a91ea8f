//! The permissions that each program needs, asked for at start. A test compares them with the roles
//! of `deploy/manifests`.

use bindery_engine::Engine;
use bindery_runtime::{LeaseConfig, Permission};

/// What each rule set reads live and writes: its name, the API group, the resource, and the verbs.
/// The kinds that it watches are known to the engine. Programs that do not watch by an engine, or
/// use less than the rule set in it, are listed under their own name.
const NEEDED: &[(&str, &str, &str, &[&str])] = &[
    ("persistentvolume-binder", "", "persistentvolumes", &["get", "patch", "delete"]),
    ("persistentvolume-binder", "", "persistentvolumes/status", &["patch"]),
    ("persistentvolume-binder", "", "persistentvolumeclaims", &["get", "patch"]),
    ("persistentvolume-binder", "", "persistentvolumeclaims/status", &["patch"]),
    ("persistentvolume-binder", "storage.k8s.io", "storageclasses", &["get"]),
    ("ephemeral-volume", "", "persistentvolumeclaims", &["get", "create"]),
    ("persistentvolumeclaim-protection", "", "persistentvolumeclaims", &["get", "patch"]),
    ("persistentvolumeclaim-protection", "", "persistentvolumeclaims/status", &["patch"]),
    ("persistentvolume-protection", "", "persistentvolumes", &["get", "patch"]),
    ("volumeattributesclass-protection", "storage.k8s.io", "volumeattributesclasses", &["get", "patch"]),
    ("scheduler", "", "pods", &["get"]),
    ("scheduler", "", "pods/status", &["patch"]),
    ("scheduler", "", "pods/binding", &["create"]),
    ("scheduler", "", "persistentvolumes", &["get", "patch"]),
    ("scheduler", "", "persistentvolumeclaims", &["get", "patch"]),
    ("provisioner", "", "persistentvolumes", &["get", "create", "patch", "delete"]),
    ("provisioner", "", "persistentvolumeclaims", &["get", "patch"]),
    ("provisioner", "storage.k8s.io", "storageclasses", &["get"]),
    (LOCAL, "", "persistentvolumes", &["get", "list", "watch", "create", "delete"]),
    (LOCAL, "", "persistentvolumeclaims", &["get"]),
    (LOCAL, "storage.k8s.io", "storageclasses", &["get"]),
    (LOCAL, "", "nodes", &["get"]),
    (NODE_CLEANUP, "", "persistentvolumes", &["get", "list", "delete"]),
    (NODE_CLEANUP, "", "persistentvolumeclaims", &["get", "delete"]),
    (NODE_CLEANUP, "", "nodes", &["get", "list"]),
];

/// The name of `bindery provisioner local` in the table.
pub const LOCAL: &str = "local";
/// The name of `bindery provisioner node-cleanup` in the table.
pub const NODE_CLEANUP: &str = "node-cleanup";

/// The permissions that a rule set or a program of the table needs.
pub fn of(name: &str) -> Vec<Permission> {
    let rows = NEEDED.iter().filter(|(row, ..)| *row == name);
    let cluster = |(group, resource), verbs: &[&'static str]| {
        verbs.iter().map(move |verb| Permission::cluster(verb, group, resource)).collect::<Vec<_>>()
    };
    let events = cluster(("", "events"), &["create", "patch"]);
    rows.flat_map(|(_, group, resource, verbs)| cluster((group, resource), verbs)).chain(events).collect()
}

/// The permissions that an engine needs, and a candidate for a lease.
pub fn needed(engine: &Engine, lease: Option<&LeaseConfig>) -> Vec<Permission> {
    let watches = engine.watches().iter().filter(|kind| kind.is_served());
    let mut needed: Vec<Permission> = watches.flat_map(|kind| Permission::to_watch(*kind)).collect();
    needed.extend(engine.controllers().flat_map(of));
    needed.extend(lease.into_iter().flat_map(of_lease));
    needed.sort();
    needed.dedup();
    needed
}

/// The permissions to store provisioning records in a namespace.
pub fn of_records(namespace: &str) -> [Permission; 4] {
    ["list", "watch", "create", "patch"]
        .map(|verb| Permission { namespace: namespace.to_owned(), ..Permission::cluster(verb, "", "configmaps") })
}

fn of_lease(lease: &LeaseConfig) -> [Permission; 3] {
    ["get", "update", "create"].map(|verb| Permission {
        namespace: lease.namespace.clone(),
        // The name is unknown when a create request is authorized.
        name: if verb == "create" { String::new() } else { lease.name.clone() },
        ..Permission::cluster(verb, "coordination.k8s.io", "leases")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bindery_binder::Config as BinderConfig;
    use bindery_engine::Config;
    use bindery_provisioner_sdk::{Config as ProvisionerConfig, Provisioner, TopologyConfig};
    use bindery_rules_api::RuleSet;
    use bindery_scheduler::Scheduler;

    use super::*;
    use crate::controller::registry::{self, Settings};
    use crate::snapshot;

    type Right = (String, String, String);

    /// The rights that a ClusterRole grants: verb, API group, resource.
    fn granted(manifest: &str, role: &str) -> BTreeSet<Right> {
        let path = format!("{}/../../deploy/manifests/{manifest}", env!("CARGO_MANIFEST_DIR"));
        let documents = snapshot::documents(&std::fs::read_to_string(path).expect("a manifest")).expect("YAML");
        let is_role =
            |document: &&serde_json::Value| document["kind"] == "ClusterRole" && document["metadata"]["name"] == role;
        let role = documents.iter().find(is_role).expect("the role");
        let list = |value: &serde_json::Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|text| text.as_str().expect("text").to_owned()).collect()
        };
        let mut rights = BTreeSet::new();
        for rule in role["rules"].as_array().expect("rules") {
            for (group, resource) in list(&rule["apiGroups"])
                .iter()
                .flat_map(|group| list(&rule["resources"]).into_iter().map(move |resource| (group.clone(), resource)))
            {
                rights.extend(list(&rule["verbs"]).into_iter().map(|verb| (verb, group.clone(), resource.clone())));
            }
        }
        rights
    }

    fn asked(sets: Vec<Box<dyn RuleSet + Send>>) -> BTreeSet<Right> {
        rights(needed(&Engine::new(Config::default(), sets), None))
    }

    fn rights(needed: Vec<Permission>) -> BTreeSet<Right> {
        needed.into_iter().map(|p| (p.verb.to_owned(), p.group.to_owned(), p.resource.to_owned())).collect()
    }

    fn right(verb: &str, resource: &str) -> Right {
        (verb.to_owned(), String::new(), resource.to_owned())
    }

    #[test]
    fn roles_grant_what_programs_ask_for() {
        let unused_condition = registry::unused_gate(&[], None).expect("a gate");
        let controllers = asked(registry::all(&Settings { binder: BinderConfig::default(), unused_condition }));
        // Only for the host-path provisioner, and for an admission plugin that is off by default.
        let optional = [right("create", "persistentvolumes"), right("update", "pods/finalizers")];
        let role = granted("bindery.yaml", "bindery");
        assert_eq!(role.difference(&controllers).cloned().collect::<Vec<_>>(), optional);
        assert!(controllers.is_subset(&role), "{:?}", controllers.difference(&role));
        let scheduler = asked(vec![Box::new(Scheduler::default())]);
        assert_eq!(scheduler, granted("bindery-scheduler.yaml", "bindery-scheduler"));
        let topology = Some(TopologyConfig { strict: false, immediate: true });
        let csi = ProvisionerConfig { topology, ..ProvisionerConfig::new("csi.example.com") };
        let provisioner = asked(vec![Box::new(Provisioner::new(csi))]);
        let role = granted("bindery-csi.yaml", "bindery-csi");
        assert!(provisioner.is_subset(&role), "{:?}", provisioner.difference(&role));
        assert_eq!(rights(of(LOCAL)), granted("bindery-local.yaml", "bindery-local"));
        assert_eq!(rights(of(NODE_CLEANUP)), granted("bindery-local.yaml", "bindery-node-cleanup"));
    }
}
