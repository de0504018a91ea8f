//! vac_protection_controller_test.go, TestVACProtectionController, and further cases. Unlike
//! upstream, a class is deleted only after live lists have shown that nothing refers to it.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use serde_json::json;

use crate::case::{Case, attributes_class, attributes_class_key, claim_key, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [classes(), volumes(), claims(), further()].into_iter().flatten().collect()
}

fn forbidden() -> RequestError {
    RequestError::Error(403, "forbidden: Mock error".into())
}

const LISTS: [&str; 2] = ["list PersistentVolumeClaim ", "list PersistentVolume "];
const GUARD: &str = "write VolumeAttributesClass vac1 [protection.attributes-class.add-finalizer]";
const LET_GO: &str = "write VolumeAttributesClass vac1 [protection.attributes-class.remove-finalizer]";
const GONE: &str = "vac vac1 protected deleting";

fn classes() -> Vec<Case> {
    vec![
        attributes_class("VAC without finalizer -> finalizer is added")
            .before("vac vac1")
            .after("vac vac1 protected")
            .requests(&[GUARD]),
        attributes_class("VAC with finalizer -> no action").before("vac vac1 protected").unchanged().requests(&[]),
        attributes_class("saving VAC finalizer fails -> controller retries")
            .before("vac vac1")
            .error("write", Kind::AttributesClass, forbidden())
            .error("write", Kind::AttributesClass, forbidden())
            .after("vac vac1 protected")
            .requests(&[GUARD, GUARD, GUARD]),
        attributes_class("deleted VAC with finalizer -> finalizer is removed")
            .before(GONE)
            .after("")
            .requests(&[LISTS[0], LISTS[1], LET_GO]),
        attributes_class("finalizer removal fails -> controller retries")
            .before(GONE)
            .error("write", Kind::AttributesClass, forbidden())
            .error("write", Kind::AttributesClass, forbidden())
            .after("")
            .requests(&[LISTS[0], LISTS[1], LET_GO, LISTS[0], LISTS[1], LET_GO, LISTS[0], LISTS[1], LET_GO]),
        attributes_class("deleted VAC with finalizer but it's referenced by a PV -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pv volume1 1Gi Available vac=vac1",
            )
            .unchanged()
            .requests(&[]),
        attributes_class("deleted VAC with finalizer but it's referenced by a PVC -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac1",
            )
            .unchanged()
            .requests(&[]),
    ]
}

/// A volume stops referring to a class.
fn volumes() -> Vec<Case> {
    let used = |name| {
        attributes_class(name).before(
            "vac vac1 protected deleting
             pv volume1 1Gi Available vac=vac1",
        )
    };
    vec![
        used("pv changes vac and deleted VAC with finalizer -> finalizer is removed")
            .then(|cluster| put(cluster, "pv volume1 1Gi Available vac=vac2"))
            .after("pv volume1 1Gi Available vac=vac2"),
        used("pv is deleted and deleted VAC with finalizer -> finalizer is removed")
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after(""),
        attributes_class("pv is deleted but other pv still holds terminating vac -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pv volume1 1Gi Available vac=vac1
                 pv volume2 1Gi Available vac=vac1",
            )
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after(
                "vac vac1 protected deleting
                 pv volume2 1Gi Available vac=vac1",
            )
            .requests(&[]),
        attributes_class("pv is deleted but pvc still holds terminating vac -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pv volume1 1Gi Available vac=vac1
                 pvc claim1#uid1 1Gi Pending vac=vac1",
            )
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac1",
            )
            .requests(&[]),
    ]
}

/// A claim stops referring to a class.
fn claims() -> Vec<Case> {
    let used = |name| {
        attributes_class(name).before(
            "vac vac1 protected deleting
             pvc claim1#uid1 1Gi Pending vac=vac1",
        )
    };
    vec![
        used("pvc changes vac and deleted VAC with finalizer -> finalizer is removed")
            .then(|cluster| put(cluster, "pvc claim1#uid1 1Gi Pending vac=vac2"))
            .after("pvc claim1#uid1 1Gi Pending vac=vac2"),
        used("pvc changes vac but its status still holds terminating vac -> finalizer is not removed")
            .then(|cluster| put(cluster, "pvc claim1#uid1 1Gi Pending vac=vac2 has-vac=vac1"))
            .after(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac2 has-vac=vac1",
            )
            .requests(&[]),
        used("pvc changes vac but its target status still holds terminating vac -> finalizer is not removed")
            .then(|cluster| put(cluster, "pvc claim1#uid1 1Gi Pending vac=vac2 target-vac=vac1"))
            .after(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac2 target-vac=vac1",
            )
            .requests(&[]),
        attributes_class("pvc is deleted but other pvc still holds terminating vac -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac1
                 pvc claim2#uid2 1Gi Pending vac=vac1",
            )
            .then(|cluster| cluster.remove(&claim_key("claim1")))
            .after(
                "vac vac1 protected deleting
                 pvc claim2#uid2 1Gi Pending vac=vac1",
            )
            .requests(&[]),
        attributes_class("pvc is deleted but pv still holds terminating vac -> finalizer is not removed")
            .before(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending vac=vac1
                 pv volume1 1Gi Available vac=vac1",
            )
            .then(|cluster| cluster.remove(&claim_key("claim1")))
            .after(
                "vac vac1 protected deleting
                 pv volume1 1Gi Available vac=vac1",
            )
            .requests(&[]),
    ]
}

fn further() -> Vec<Case> {
    vec![
        attributes_class("a claim that is not in the cache yet blocks the deletion")
            .before(GONE)
            .late("pvc other/claim1#uid1 1Gi Bound vol=v has-vac=vac1")
            .after(
                "vac vac1 protected deleting
                 pvc other/claim1#uid1 1Gi Bound vol=v has-vac=vac1",
            )
            .requests(&[LISTS[0]]),
        attributes_class("a volume that is not in the cache yet blocks the deletion until it changes")
            .before(GONE)
            .late("pv volume1 1Gi Available vac=vac1")
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after("")
            .requests(&[LISTS[0], LISTS[1], LISTS[0], LISTS[1], LET_GO]),
        attributes_class("lists are rejected, then allowed")
            .before(GONE)
            .error("list", Kind::Claim, forbidden())
            .error("list", Kind::Volume, forbidden())
            .after("")
            .requests(&[LISTS[0], LISTS[0], LISTS[1], LISTS[0], LISTS[1], LET_GO]),
        attributes_class("foreign finalizers are kept")
            .before("vac vac1 fin=example.com/a protected fin=example.com/b deleting")
            .after("vac vac1 fin=example.com/a fin=example.com/b deleting"),
        attributes_class("the answer to removing the finalizer is lost")
            .before("vac vac1 fin=example.com/a protected deleting")
            .lost_answer("write", Kind::AttributesClass)
            .after("vac vac1 fin=example.com/a deleting")
            .requests(&[LISTS[0], LISTS[1], LET_GO, "read VolumeAttributesClass vac1"]),
        attributes_class("a malformed attributes class is left alone until it is fixed")
            .before(GONE)
            .unseen_change(|cluster| cluster.edit(&attributes_class_key("vac1"), json!({"driverName": 7})))
            .then(|cluster| put(cluster, GONE))
            .after(""),
        attributes_class("a class that is deleted before it is synced")
            .before(GONE)
            .late("pv volume1 1Gi Available vac=vac1")
            .then(|cluster| cluster.remove(&attributes_class_key("vac1")))
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after(""),
        attributes_class("a malformed claim may refer to it, until it is fixed")
            .before(
                "vac vac1 protected deleting
                 pvc claim1#uid1 1Gi Pending",
            )
            .unseen_change(|cluster| cluster.edit(&claim_key("claim1"), json!({"spec": {"resources": "all"}})))
            .then(|cluster| put(cluster, "pvc claim1#uid1 1Gi Pending"))
            .after("pvc claim1#uid1 1Gi Pending"),
        attributes_class("a malformed volume may refer to it, until it is deleted")
            .before(
                "vac vac1 protected deleting
                 pv volume1 1Gi Available",
            )
            .unseen_change(|cluster| cluster.edit(&ObjectKey::volume("volume1"), json!({"spec": {"capacity": "all"}})))
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume1")))
            .after(""),
    ]
}
