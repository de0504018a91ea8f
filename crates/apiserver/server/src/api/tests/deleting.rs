//! Deleting.

use super::*;

#[test]
fn an_object_without_finalizers_is_deleted_immediately() {
    let mut server = TestServer::new();
    let created = server.make("configmaps/default", config_map("a"));
    let (code, answer) = server.delete("configmaps/default/a", Value::Null);
    assert_eq!(
        (code, &answer["status"], &answer["details"]["uid"]),
        (200, &json!("Success"), &created["metadata"]["uid"])
    );
    assert_eq!(server.delete("configmaps/default/a", Value::Null).0, 404);
}

#[test]
fn some_kinds_return_the_deleted_object() {
    let mut server = TestServer::new();
    let class = json!({"metadata": {"name": "c"}, "provisioner": "p"});
    server.make("storageclasses.storage.k8s.io", class);
    let (_, answer) = server.delete("storageclasses.storage.k8s.io/c", Value::Null);
    assert_eq!(
        (&answer["kind"], &answer["metadata"]["resourceVersion"]),
        (&json!("StorageClass"), &json!(server.api.revision().to_string()))
    );
}

#[test]
fn finalizers_delay_the_deletion() {
    let mut server = TestServer::new();
    server.make("persistentvolumes", volume("v"));
    let (_, marked) = server.delete("persistentvolumes/v", Value::Null);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    server.wait(5);
    assert_eq!(server.delete("persistentvolumes/v", Value::Null).1, marked, "deleting again changes nothing");
    let outcome = server
        .merge("persistentvolumes/v", json!({"metadata": {"finalizers": ["kubernetes.io/pv-protection", "a/b"]}}));
    let why = "PersistentVolume \"v\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
               deleted, found new finalizers []string{\"a/b\"}";
    assert_eq!(rejected(&outcome), (422, "Invalid", why));
    let outcome = server.create("persistentvolumes", volume("v"));
    assert_eq!(rejected(&outcome).2, "object is being deleted: persistentvolumes \"v\" already exists");
    let (code, last) = server.merge("persistentvolumes/v", json!({"metadata": {"finalizers": null}}));
    assert_eq!((code, last["metadata"].get("finalizers")), (200, None));
    assert_eq!(server.get("persistentvolumes/v").0, 404);
}

#[test]
fn preconditions_are_checked() {
    let mut server = TestServer::new();
    let created = server.make("configmaps/default", config_map("a"));
    let outcome = server.delete("configmaps/default/a", json!({"preconditions": {"uid": "other"}}));
    let uid = text(&created, &["metadata", "uid"]);
    let why = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) does not match the UID in record ({uid}). \
         The object might have been deleted and then recreated"
    );
    assert_eq!(rejected(&outcome), (409, "Conflict", why.as_str()));
    let outcome = server.delete("configmaps/default/a", json!({"preconditions": {"resourceVersion": "1"}}));
    assert_eq!(outcome.0, 409);
    assert_eq!(server.delete("configmaps/default/a", json!({"preconditions": {"uid": uid}})).0, 200);
}

#[test]
fn only_a_scheduled_pod_gets_a_grace_period() {
    let mut server = TestServer::new();
    server.make("pods/default", pod("free"));
    server.delete("pods/default/free", Value::Null);
    assert_eq!(server.get("pods/default/free").0, 404);

    server.make("pods/default", pod("bound"));
    let binding = json!({"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(server.create("pods/default/bound/binding", binding).0, 201);
    let (_, marked) = server.delete("pods/default/bound", Value::Null);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    assert_eq!(
        (&marked["metadata"]["deletionGracePeriodSeconds"], &marked["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    let (_, sooner) = server.delete("pods/default/bound", json!({"gracePeriodSeconds": 10}));
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z");
    assert_eq!(
        server.delete("pods/default/bound", json!({"gracePeriodSeconds": 20})).1,
        sooner,
        "the deadline is never extended"
    );
    server.delete("pods/default/bound", json!({"gracePeriodSeconds": 0}));
    assert_eq!(server.get("pods/default/bound").0, 404);
}

#[test]
fn the_propagation_policy_is_stored_as_a_finalizer() {
    let mut server = TestServer::new();
    for (policy, finalizers) in [("Foreground", json!(["foregroundDeletion"])), ("Orphan", json!(["orphan"]))] {
        server.make("configmaps/default", config_map(&policy.to_lowercase()));
        let path = format!("configmaps/default/{}", policy.to_lowercase());
        let (_, marked) = server.delete(&path, json!({"propagationPolicy": policy}));
        assert_eq!(marked["metadata"]["finalizers"], finalizers);
        server.delete(&path, json!({"propagationPolicy": "Background"}));
        assert_eq!(server.get(&path).0, 404);
    }
}

#[test]
fn delete_collection_deletes_selected_objects_only() {
    let mut server = TestServer::new();
    for name in ["a", "b", "c"] {
        server.make("configmaps/default", config_map(name));
    }
    let (_, gone) =
        server.send(Verb::DeleteCollection, "configmaps/default?fieldSelector=metadata.name!=b", Value::Null);
    assert_eq!(names_in(&gone), ["a", "c"]);
    assert_eq!(server.names("configmaps/default"), ["b"]);
}

#[test]
fn system_namespaces_cannot_be_deleted() {
    let mut server = TestServer::new();
    let outcome = server.delete("namespaces/kube-system", Value::Null);
    assert_eq!(
        rejected(&outcome),
        (403, "Forbidden", "namespaces \"kube-system\" is forbidden: this namespace may not be deleted")
    );
    assert_eq!(server.names("namespaces"), ["default", "kube-node-lease", "kube-public", "kube-system"]);
}
