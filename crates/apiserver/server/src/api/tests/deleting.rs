//! Deleting.

use super::*;

#[test]
fn what_nobody_holds_on_to_goes_at_once() {
    let mut world = World::new();
    let made = world.make("configmaps/default", config_map("a"));
    let (code, answer) = world.delete("configmaps/default/a", Value::Null);
    assert_eq!(
        (code, &answer["status"], &answer["details"]["uid"]),
        (200, &json!("Success"), &made["metadata"]["uid"])
    );
    assert_eq!(world.delete("configmaps/default/a", Value::Null).0, 404);
}

#[test]
fn some_kinds_show_what_was_deleted() {
    let mut world = World::new();
    let class = json!({"metadata": {"name": "c"}, "provisioner": "p"});
    world.make("storageclasses.storage.k8s.io", class);
    let (_, answer) = world.delete("storageclasses.storage.k8s.io/c", Value::Null);
    assert_eq!(
        (&answer["kind"], &answer["metadata"]["resourceVersion"]),
        (&json!("StorageClass"), &json!(world.api.revision().to_string()))
    );
}

#[test]
fn finalizers_keep_an_object_until_the_last_is_taken_off() {
    let mut world = World::new();
    world.make("persistentvolumes", volume("v"));
    let (_, marked) = world.delete("persistentvolumes/v", Value::Null);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    world.wait(5);
    assert_eq!(world.delete("persistentvolumes/v", Value::Null).1, marked, "deleting again changes nothing");
    let outcome =
        world.merge("persistentvolumes/v", json!({"metadata": {"finalizers": ["kubernetes.io/pv-protection", "a/b"]}}));
    let why = "PersistentVolume \"v\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
               deleted, found new finalizers []string{\"a/b\"}";
    assert_eq!(refused(&outcome), (422, "Invalid", why));
    let outcome = world.create("persistentvolumes", volume("v"));
    assert_eq!(refused(&outcome).2, "object is being deleted: persistentvolumes \"v\" already exists");
    let (code, last) = world.merge("persistentvolumes/v", json!({"metadata": {"finalizers": null}}));
    assert_eq!((code, last["metadata"].get("finalizers")), (200, None));
    assert_eq!(world.get("persistentvolumes/v").0, 404);
}

#[test]
fn preconditions_must_hold() {
    let mut world = World::new();
    let made = world.make("configmaps/default", config_map("a"));
    let outcome = world.delete("configmaps/default/a", json!({"preconditions": {"uid": "other"}}));
    let uid = text(&made, &["metadata", "uid"]);
    let why = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) does not match the UID in record ({uid}). \
         The object might have been deleted and then recreated"
    );
    assert_eq!(refused(&outcome), (409, "Conflict", why.as_str()));
    let outcome = world.delete("configmaps/default/a", json!({"preconditions": {"resourceVersion": "1"}}));
    assert_eq!(outcome.0, 409);
    assert_eq!(world.delete("configmaps/default/a", json!({"preconditions": {"uid": uid}})).0, 200);
}

#[test]
fn a_pod_on_a_node_is_given_time_and_one_without_is_not() {
    let mut world = World::new();
    world.make("pods/default", pod("free"));
    world.delete("pods/default/free", Value::Null);
    assert_eq!(world.get("pods/default/free").0, 404);

    world.make("pods/default", pod("bound"));
    let binding = json!({"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(world.create("pods/default/bound/binding", binding).0, 201);
    let (_, marked) = world.delete("pods/default/bound", Value::Null);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    assert_eq!(
        (&marked["metadata"]["deletionGracePeriodSeconds"], &marked["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    let (_, sooner) = world.delete("pods/default/bound", json!({"gracePeriodSeconds": 10}));
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z");
    assert_eq!(world.delete("pods/default/bound", json!({"gracePeriodSeconds": 20})).1, sooner, "never later");
    world.delete("pods/default/bound", json!({"gracePeriodSeconds": 0}));
    assert_eq!(world.get("pods/default/bound").0, 404);
}

#[test]
fn the_policy_is_kept_as_a_finalizer() {
    let mut world = World::new();
    for (policy, finalizers) in [("Foreground", json!(["foregroundDeletion"])), ("Orphan", json!(["orphan"]))] {
        world.make("configmaps/default", config_map(&policy.to_lowercase()));
        let path = format!("configmaps/default/{}", policy.to_lowercase());
        let (_, marked) = world.delete(&path, json!({"propagationPolicy": policy}));
        assert_eq!(marked["metadata"]["finalizers"], finalizers);
        world.delete(&path, json!({"propagationPolicy": "Background"}));
        assert_eq!(world.get(&path).0, 404);
    }
}

#[test]
fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.make("configmaps/default", config_map(name));
    }
    let (_, gone) =
        world.send(Verb::DeleteCollection, "configmaps/default?fieldSelector=metadata.name!=b", Value::Null);
    assert_eq!(names_in(&gone), ["a", "c"]);
    assert_eq!(world.names("configmaps/default"), ["b"]);
}

#[test]
fn system_namespaces_stay() {
    let mut world = World::new();
    let outcome = world.delete("namespaces/kube-system", Value::Null);
    assert_eq!(
        refused(&outcome),
        (403, "Forbidden", "namespaces \"kube-system\" is forbidden: this namespace may not be deleted")
    );
    assert_eq!(world.names("namespaces"), ["default", "kube-node-lease", "kube-public", "kube-system"]);
}
