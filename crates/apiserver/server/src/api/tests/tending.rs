//! What is done without being asked for.

use super::*;

fn owned_by(owner: &Value, name: &str, block: bool) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block}]}})
}

#[test]
fn dependents_go_when_their_last_owner_has_gone() {
    let mut world = World::new();
    let owner = world.make("pods/default", pod("owner"));
    let mut claim = claim("c");
    claim["metadata"] = owned_by(&owner, "c", false)["metadata"].clone();
    world.make("persistentvolumeclaims/default", claim);
    let child = world.make("configmaps/default", owned_by(&owner, "child", false));
    world.make("configmaps/default", owned_by(&child, "grandchild", false));
    world.tend();
    assert_eq!(world.names("configmaps/default"), ["child", "grandchild"]);
    world.delete("pods/default/owner", json!({"propagationPolicy": "Background"}));
    world.tend();
    assert_eq!(world.names("configmaps/default"), Vec::<String>::new());
    let (_, held) = world.get("persistentvolumeclaims/default/c");
    assert!(held["metadata"].get("deletionTimestamp").is_some(), "its finalizer holds it, but it is on its way");
}

#[test]
fn a_dependent_of_two_stays_with_the_other() {
    let mut world = World::new();
    let one = world.make("configmaps/default", config_map("one"));
    let other = world.make("configmaps/default", config_map("other"));
    let mut child = owned_by(&one, "child", false);
    let second = owned_by(&other, "", false)["metadata"]["ownerReferences"][0].clone();
    child["metadata"]["ownerReferences"].as_array_mut().expect("owners").push(second);
    world.make("configmaps/default", child);
    world.delete("configmaps/default/one", Value::Null);
    world.tend();
    let (_, child) = world.get("configmaps/default/child");
    assert_eq!(child["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "other");
}

#[test]
fn an_owner_of_another_uid_is_no_owner() {
    let mut world = World::new();
    let mut owner = world.make("configmaps/default", config_map("owner"));
    owner["metadata"]["uid"] = "another".into();
    world.make("configmaps/default", owned_by(&owner, "child", false));
    world.tend();
    assert_eq!(world.names("configmaps/default"), ["owner"]);
}

#[test]
fn in_the_foreground_the_owner_goes_last() {
    let mut world = World::new();
    let owner = world.make("configmaps/default", config_map("owner"));
    let mut held = owned_by(&owner, "held", true);
    held["metadata"]["finalizers"] = json!(["a/b"]);
    world.make("configmaps/default", held);
    world.make("configmaps/default", owned_by(&owner, "free", true));
    world.delete("configmaps/default/owner", json!({"propagationPolicy": "Foreground"}));
    world.tend();
    assert_eq!(world.names("configmaps/default"), ["held", "owner"]);
    world.merge("configmaps/default/held", json!({"metadata": {"finalizers": null}}));
    world.tend();
    assert_eq!(world.names("configmaps/default"), Vec::<String>::new());
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let mut world = World::new();
    let owner = world.make("configmaps/default", config_map("owner"));
    world.make("configmaps/default", owned_by(&owner, "child", true));
    world.delete("configmaps/default/owner", json!({"propagationPolicy": "Orphan"}));
    world.tend();
    assert_eq!(world.names("configmaps/default"), ["child"]);
    assert_eq!(world.get("configmaps/default/child").1["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_namespace_is_emptied_and_then_goes() {
    let mut world = World::new();
    world.make("namespaces", json!({"metadata": {"name": "n"}}));
    world.make("configmaps/n", config_map("a"));
    world.make("persistentvolumeclaims/n", claim("c"));
    let (_, marked) = world.delete("namespaces/n", Value::Null);
    assert_eq!(marked["status"]["phase"], "Terminating");
    world.tend();
    assert_eq!(world.names("configmaps/n"), Vec::<String>::new());
    assert_eq!(world.get("namespaces/n").0, 200, "a claim is still there");
    world.merge("persistentvolumeclaims/n/c", json!({"metadata": {"finalizers": null}}));
    world.tend();
    assert_eq!(world.get("namespaces/n").0, 404);
}

#[test]
fn a_namespace_can_be_finalized_by_others() {
    let mut world = World::new();
    world.make("namespaces", json!({"metadata": {"name": "n"}}));
    world.delete("namespaces/n", Value::Null);
    let body = json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}});
    assert_eq!(world.update("namespaces/n/finalize", body).0, 200);
    assert_eq!(world.get("namespaces/n").0, 404);
}

#[test]
fn events_fade_an_hour_after_they_were_last_written() {
    let mut world = World::new();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}});
    world.make("events/default", event);
    world.wait(1800);
    world.merge("events/default/e", json!({"count": 2}));
    world.wait(3599);
    world.tend();
    assert_eq!(world.get("events/default/e").0, 200);
    world.wait(1);
    world.tend();
    assert_eq!(world.get("events/default/e").0, 404);
}

#[test]
fn tending_says_when_there_is_more_to_do() {
    let mut world = World::new();
    let due = world.tend().expect("history is let go of some day");
    assert_eq!(due, world.now + SignedDuration::from_secs(300));
    world.wait(300);
    assert_eq!(world.tend(), None);
}
