//! Reclaiming: S4, S5, S14; L2.

use std::sync::Arc;

use bindery_binder::Binder;
use bindery_explorer::{EndCheck, Faults, Rules, Scenario, UserAction, promises};
use bindery_model::ObjectKey;
use bindery_provisioner::{Config, Provisioner};
use serde_json::json;

use crate::{check, claim, two};

/// The binder and a provisioner.
fn controllers() -> Rules {
    Arc::new(|number| {
        let config = Config { instance: number.to_string().into(), ..Config::new("csi.example.com") };
        vec![Box::new(Binder::default()), Box::new(Provisioner::new(config))]
    })
}

const BOUND: &str = "pvc c#u-c 1Gi Bound vol=a bbc bc class=now
                     sc now csi.example.com
                     pv a 1Gi Bound ->c#u-c bbc class=now policy=Delete source=csi:csi.example.com by=csi.example.com \
                     fin=external-provisioner.volume.kubernetes.io/finalizer";

/// One instance of each, or two of both.
fn scenario(instances: usize) -> Scenario {
    let ends: Vec<EndCheck> = vec![promises::bound, promises::reclaimed];
    let both = two(controllers(), BOUND);
    Scenario { instances: both.instances[..instances].to_vec(), ends, ..both }
}

fn retain() -> UserAction {
    UserAction::Edit(ObjectKey::volume("a"), json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}))
}

#[test]
fn claim_is_deleted() {
    let users = vec![UserAction::Delete(claim("c")), retain()];
    check("reclaiming: the claim is deleted", Scenario { users, lag: 1, ..scenario(2) });
}

#[test]
fn claim_is_replaced() {
    let users =
        vec![UserAction::Delete(claim("c")), UserAction::Create("pvc c#u-c2 1Gi Pending class=now vol=a"), retain()];
    check("reclaiming: the claim is replaced", Scenario { users, ..scenario(1) });
}

#[test]
fn faults() {
    let users = vec![UserAction::Delete(claim("c")), retain()];
    let faults = Faults { crashes: 1, lost_answers: 1, late_requests: 1, early_timers: 1, storage_failures: 1 };
    check("reclaiming: faults", Scenario { users, faults, ..scenario(1) });
}
