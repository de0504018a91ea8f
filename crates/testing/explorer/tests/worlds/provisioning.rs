//! Provisioning: S10, S14, and no storage is leaked; L3, L4.

use std::sync::Arc;

use bindery_explorer::{Faults, Rules, Scenario, UserAction, promises};
use bindery_model::{Kind, ObjectKey};
use bindery_provisioner::{Config, Provisioner};
use serde_json::json;

use crate::{check, claim};

/// Instances of the provisioner: each has a name of its own, and a new one after a restart.
fn provisioner() -> Rules {
    Arc::new(|number| {
        let config = Config { instance: number.to_string().into(), ..Config::new("csi.example.com") };
        vec![Box::new(Provisioner::new(config))]
    })
}

pub fn scenario(instances: usize) -> Scenario {
    Scenario {
        objects: "pvc c#u-c 1Gi Pending class=now sp=csi.example.com
                  sc now csi.example.com",
        instances: vec![provisioner(); instances],
        lag: 2,
        is_symmetric: false,
        users: Vec::new(),
        faults: Faults::default(),
        ends: vec![promises::provisioned],
        ignores_versions: false,
    }
}

pub fn delete_claim() -> UserAction {
    UserAction::Delete(claim("c"))
}

fn change_class() -> UserAction {
    UserAction::Edit(ObjectKey::cluster(Kind::Class, "now"), json!({"parameters": {"type": "other"}}))
}

#[test]
fn one_instance() {
    check("one instance", scenario(1));
}

#[test]
fn two_instances() {
    check("two instances", scenario(2));
}

#[test]
fn claim_is_deleted() {
    let users = vec![delete_claim()];
    let faults = Faults { lost_answers: 1, late_requests: 1, ..Faults::default() };
    check("provisioning, one instance, lost answer, claim deleted", Scenario { users, faults, ..scenario(1) });
}

#[test]
fn crash() {
    let users = vec![delete_claim()];
    let faults = Faults { crashes: 1, late_requests: 1, ..Faults::default() };
    check("provisioning, one instance, crash, claim deleted", Scenario { users, faults, ..scenario(1) });
}

#[test]
fn failure() {
    let users = vec![delete_claim()];
    let faults = Faults { lost_answers: 1, late_requests: 1, storage_failures: 1, ..Faults::default() };
    check("provisioning, one instance, lost answer, failure, claim deleted", Scenario { users, faults, ..scenario(1) });
}

#[test]
#[ignore = "the parameters of a retry follow the class"]
fn class_changed() {
    let users = vec![change_class(), delete_claim()];
    let faults = Faults { lost_answers: 1, late_requests: 1, ..Faults::default() };
    check("provisioning, one instance, lost answer, changed class", Scenario { users, faults, ..scenario(1) });
}

#[test]
#[ignore = "a late intent is left"]
fn two_lost() {
    let users = vec![delete_claim()];
    let faults = Faults { lost_answers: 1, late_requests: 1, ..Faults::default() };
    check("provisioning, two instances, lost answer, claim deleted", Scenario { users, faults, ..scenario(2) });
}

#[test]
#[ignore = "a late intent is left"]
fn two_crash() {
    let faults = Faults { crashes: 1, late_requests: 1, ..Faults::default() };
    check("provisioning, two instances, crash", Scenario { faults, ..scenario(2) });
}
