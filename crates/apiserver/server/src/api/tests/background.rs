//! Background tasks.

use super::*;

fn owned_by(owner: &Value, name: &str, block: bool) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block}]}})
}

#[test]
fn dependents_are_deleted_after_their_last_owner() {
    let mut server = TestServer::new();
    let owner = server.make("pods/default", pod("owner"));
    let mut claim = claim("c");
    claim["metadata"] = owned_by(&owner, "c", false)["metadata"].clone();
    server.make("persistentvolumeclaims/default", claim);
    let child = server.make("configmaps/default", owned_by(&owner, "child", false));
    server.make("configmaps/default", owned_by(&child, "grandchild", false));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), ["child", "grandchild"]);
    server.delete("pods/default/owner", json!({"propagationPolicy": "Background"}));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), Vec::<String>::new());
    let (_, held) = server.get("persistentvolumeclaims/default/c");
    assert!(held["metadata"].get("deletionTimestamp").is_some(), "it is Terminating because of its finalizer");
}

#[test]
fn a_dependent_with_another_owner_is_kept() {
    let mut server = TestServer::new();
    let one = server.make("configmaps/default", config_map("one"));
    let other = server.make("configmaps/default", config_map("other"));
    let mut child = owned_by(&one, "child", false);
    let second = owned_by(&other, "", false)["metadata"]["ownerReferences"][0].clone();
    child["metadata"]["ownerReferences"].as_array_mut().expect("owners").push(second);
    server.make("configmaps/default", child);
    server.delete("configmaps/default/one", Value::Null);
    server.run_background_tasks();
    let (_, child) = server.get("configmaps/default/child");
    assert_eq!(child["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "other");
}

#[test]
fn an_owner_reference_with_another_uid_is_dangling() {
    let mut server = TestServer::new();
    let mut owner = server.make("configmaps/default", config_map("owner"));
    owner["metadata"]["uid"] = "another".into();
    server.make("configmaps/default", owned_by(&owner, "child", false));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), ["owner"]);
}

#[test]
fn foreground_deletion_removes_the_owner_last() {
    let mut server = TestServer::new();
    let owner = server.make("configmaps/default", config_map("owner"));
    let mut held = owned_by(&owner, "held", true);
    held["metadata"]["finalizers"] = json!(["a/b"]);
    server.make("configmaps/default", held);
    server.make("configmaps/default", owned_by(&owner, "free", true));
    server.delete("configmaps/default/owner", json!({"propagationPolicy": "Foreground"}));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), ["held", "owner"]);
    server.merge("configmaps/default/held", json!({"metadata": {"finalizers": null}}));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), Vec::<String>::new());
}

#[test]
fn orphaned_dependents_lose_their_owner_reference() {
    let mut server = TestServer::new();
    let owner = server.make("configmaps/default", config_map("owner"));
    server.make("configmaps/default", owned_by(&owner, "child", true));
    server.delete("configmaps/default/owner", json!({"propagationPolicy": "Orphan"}));
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/default"), ["child"]);
    assert_eq!(server.get("configmaps/default/child").1["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_deleted_namespace_is_emptied_and_then_removed() {
    let mut server = TestServer::new();
    server.make("namespaces", json!({"metadata": {"name": "n"}}));
    server.make("configmaps/n", config_map("a"));
    server.make("persistentvolumeclaims/n", claim("c"));
    let (_, marked) = server.delete("namespaces/n", Value::Null);
    assert_eq!(marked["status"]["phase"], "Terminating");
    server.run_background_tasks();
    assert_eq!(server.names("configmaps/n"), Vec::<String>::new());
    assert_eq!(server.get("namespaces/n").0, 200, "the claim still exists");
    server.merge("persistentvolumeclaims/n/c", json!({"metadata": {"finalizers": null}}));
    server.run_background_tasks();
    assert_eq!(server.get("namespaces/n").0, 404);
}

#[test]
fn a_namespace_can_be_finalized_by_another_controller() {
    let mut server = TestServer::new();
    server.make("namespaces", json!({"metadata": {"name": "n"}}));
    server.delete("namespaces/n", Value::Null);
    let body = json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}});
    assert_eq!(server.update("namespaces/n/finalize", body).0, 200);
    assert_eq!(server.get("namespaces/n").0, 404);
}

#[test]
fn events_expire_an_hour_after_their_last_write() {
    let mut server = TestServer::new();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}});
    server.make("events/default", event);
    server.wait(1800);
    server.merge("events/default/e", json!({"count": 2}));
    server.wait(3599);
    server.run_background_tasks();
    assert_eq!(server.get("events/default/e").0, 200);
    server.wait(1);
    server.run_background_tasks();
    assert_eq!(server.get("events/default/e").0, 404);
}

#[test]
fn background_tasks_report_when_the_next_is_due() {
    let mut server = TestServer::new();
    let due = server.run_background_tasks().expect("history expires");
    assert_eq!(due, server.now + SignedDuration::from_secs(300));
    server.wait(300);
    assert_eq!(server.run_background_tasks(), None);
}

#[test]
fn each_run_expires_a_bounded_number_of_events() {
    let mut server = TestServer::new();
    for number in 0..1_000 {
        let event = json!({"metadata": {"name": format!("e{number}")}, "involvedObject": {"namespace": "default"}});
        server.make("events/default", event);
    }
    server.wait(3600);
    let before = server.api.revision();
    let mut runs = 0;
    while server.names("events/default") != Vec::<String>::new() {
        let (context, revision) = (server.context(), server.api.revision());
        let due = server.api.run_background_tasks(&context);
        let expired = server.api.revision() - revision;
        assert!(expired <= 256, "{expired}");
        let is_left = !server.names("events/default").is_empty();
        assert_eq!(due == Some(server.now), is_left, "the next run is due now if events are left: {due:?}");
        runs += 1;
    }
    assert_eq!((runs, server.api.revision() - before), (4, 1_000));
}

#[test]
fn each_run_deletes_a_bounded_number_of_objects_of_a_namespace() {
    let mut server = TestServer::new();
    // The limit is for all namespaces together.
    for namespace in ["n", "other"] {
        server.make("namespaces", json!({"metadata": {"name": namespace}}));
        for number in 0..500 {
            let name = format!("c{number}");
            server.make(&format!("configmaps/{namespace}"), json!({"metadata": {"name": name}}));
        }
        server.delete(&format!("namespaces/{namespace}"), Value::Null);
    }
    let before = server.api.revision();
    let mut runs = 0;
    while server.get("namespaces/n").0 == 200 || server.get("namespaces/other").0 == 200 {
        let (context, revision) = (server.context(), server.api.revision());
        let due = server.api.run_background_tasks(&context);
        let deleted = server.api.revision() - revision;
        assert!((1..=256).contains(&deleted), "{deleted}");
        let is_left = server.get("namespaces/other").0 == 200;
        assert_eq!(due == Some(server.now), is_left, "the next run is due now if objects are left: {due:?}");
        runs += 1;
    }
    assert_eq!((runs, server.api.revision() - before), (4, 1_002));
}
