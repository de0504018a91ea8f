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

/// A lost answer, with the request carried out late or not at all.
const LOST: Faults = Faults { crashes: 0, lost_answers: 1, late_requests: 1, early_timers: 0, storage_failures: 0 };
/// A crash, with requests that are carried out late or not at all.
const CRASH: Faults = Faults { crashes: 1, lost_answers: 0, ..LOST };

#[test]
#[ignore = "two instances may supersede each other's attempts without end, so the states are not finite"]
fn two_instances_provision_one_volume() {
    check("provisioning: two instances", scenario(2));
}

#[test]
fn claim_is_deleted_after_a_lost_answer() {
    let users = vec![delete_claim()];
    check("provisioning: lost answer", Scenario { users, faults: LOST, ..scenario(1) });
}

#[test]
fn claim_is_deleted_after_a_crash() {
    let users = vec![delete_claim()];
    check("provisioning: crash", Scenario { users, faults: CRASH, ..scenario(1) });
}

#[test]
fn retry_after_a_lost_answer_fails() {
    let users = vec![delete_claim()];
    let faults = Faults { storage_failures: 1, ..LOST };
    check("provisioning: lost answer, failure", Scenario { users, faults, ..scenario(1) });
}

#[test]
fn class_is_changed_after_a_lost_answer() {
    let users = vec![change_class(), delete_claim()];
    check("provisioning: lost answer, changed class", Scenario { users, faults: LOST, ..scenario(1) });
}

#[test]
#[ignore = "two instances may supersede each other's attempts without end, so the states are not finite"]
fn two_instances_and_a_lost_answer() {
    check("provisioning: two instances, lost answer", Scenario { faults: LOST, ..scenario(2) });
}

#[test]
#[ignore = "two instances may supersede each other's attempts without end, so the states are not finite"]
fn two_instances_and_a_crash() {
    check("provisioning: two instances, crash", Scenario { faults: CRASH, ..scenario(2) });
}
