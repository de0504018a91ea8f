//! Creating and changing.

use super::*;

#[test]
fn what_is_created_gets_an_identity_and_a_revision() {
    let mut world = World::new();
    let before = world.api.revision();
    let made = world.make("configmaps/default", config_map("a"));
    assert_eq!(made["metadata"]["resourceVersion"], (before + 1).to_string());
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(text(&made, &["metadata", "uid"]).len(), 36);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "tester");
    assert_eq!(world.get("configmaps/default/a"), (200, made));
}

#[test]
fn the_same_seed_gives_the_same_identity() {
    let one = World::new().make("configmaps/default", config_map("a"));
    let other = World::new().make("configmaps/default", config_map("a"));
    assert_eq!(one, other);
}

#[test]
fn a_second_one_of_the_same_name_is_refused() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("a"));
    let outcome = world.create("configmaps/default", config_map("a"));
    assert_eq!(refused(&outcome), (409, "AlreadyExists", "configmaps \"a\" already exists"));
}

#[test]
fn names_are_generated_from_a_prefix() {
    let mut world = World::new();
    let made = world.make("configmaps/default", json!({"metadata": {"generateName": "made-"}}));
    let name = text(&made, &["metadata", "name"]);
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    let long = world.make("configmaps/default", json!({"metadata": {"generateName": "x".repeat(70)}}));
    assert_eq!(text(&long, &["metadata", "name"]).len(), 63);
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_not_there_or_is_going() {
    let mut world = World::new();
    let outcome = world.create("configmaps/nowhere", config_map("a"));
    assert_eq!(refused(&outcome), (404, "NotFound", "namespaces \"nowhere\" not found"));
    world.make("namespaces", json!({"metadata": {"name": "going"}}));
    world.delete("namespaces/going", Value::Null);
    let outcome = world.create("configmaps/going", config_map("a"));
    let why =
        "configmaps \"a\" is forbidden: unable to create new content in namespace going because it is being terminated";
    assert_eq!(refused(&outcome), (403, "Forbidden", why));
    assert_eq!(outcome.1["details"]["causes"][0]["reason"], "NamespaceTerminating");
}

#[test]
fn only_the_latest_revision_can_be_replaced() {
    let mut world = World::new();
    let first = world.make("configmaps/default", config_map("a"));
    let mut body = config_map("a");
    body["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    body["data"]["x"] = "2".into();
    assert_eq!(world.update("configmaps/default/a", body.clone()).0, 200);
    let outcome = world.update("configmaps/default/a", body);
    let why = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest \
               version and try again";
    assert_eq!(refused(&outcome), (409, "Conflict", why));
    let revision = first["metadata"]["resourceVersion"].clone();
    let outcome = world.merge("configmaps/default/a", json!({"metadata": {"resourceVersion": revision}}));
    assert_eq!(outcome.0, 409);
}

#[test]
fn a_lease_is_never_replaced_blindly_but_made_by_a_put() {
    let mut world = World::new();
    let body = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    assert_eq!(world.update("leases.coordination.k8s.io/default/l", body.clone()).0, 201);
    let outcome = world.update("leases.coordination.k8s.io/default/l", body);
    let why = "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(refused(&outcome), (422, "Invalid", why));
}

#[test]
fn an_update_that_changes_nothing_is_no_update() {
    let mut world = World::new();
    let made = world.make("configmaps/default", config_map("a"));
    let before = world.api.revision();
    world.wait(100);
    assert_eq!(world.update("configmaps/default/a", config_map("a")), (200, made.clone()));
    assert_eq!(world.merge("configmaps/default/a", json!({"data": {"x": "1"}})), (200, made));
    assert_eq!(world.api.revision(), before);
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let mut world = World::new();
    let before = world.api.revision();
    let (code, shown) = world.create("configmaps/default?dryRun=All", config_map("a"));
    assert_eq!((code, shown["metadata"].get("resourceVersion")), (201, None));
    assert_eq!(world.get("configmaps/default/a").0, 404);
    world.make("configmaps/default", config_map("b"));
    let (_, shown) = world.merge("configmaps/default/b?dryRun=All", json!({"data": {"x": "2"}}));
    assert_eq!(shown["data"]["x"], "2");
    world.send(Verb::Delete, "configmaps/default/b", json!({"dryRun": ["All"]}));
    assert_eq!(world.get("configmaps/default/b").1["data"]["x"], "1");
    assert_eq!(world.api.revision(), before + 1);
}

#[test]
fn what_is_unknown_is_warned_of_or_refused_as_asked() {
    let mut world = World::new();
    let mut body = config_map("a");
    body["foo"] = 1.into();
    let moment = world.moment();
    let answer = world.api.handle(&moment, &request(Verb::Create, "configmaps/default", body.clone())).expect("warned");
    assert_eq!(answer.warnings, ["unknown field \"foo\""]);
    let outcome = world.create("configmaps/default?fieldValidation=Strict", body.clone());
    let why =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\"";
    assert_eq!(refused(&outcome), (400, "BadRequest", why));
    body["metadata"]["name"] = "b".into();
    let request = request(Verb::Create, "configmaps/default?fieldValidation=Ignore", body);
    assert!(world.api.handle(&moment, &request).expect("ignored").warnings.is_empty());
}

#[test]
fn names_and_namespaces_in_path_and_body_agree() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("a"));
    let outcome = world.update("configmaps/default/a", config_map("b"));
    assert_eq!(refused(&outcome).2, "the name of the object (b) does not match the name on the URL (a)");
    let mut body = config_map("a");
    body["metadata"]["namespace"] = "other".into();
    let outcome = world.update("configmaps/default/a", body);
    assert_eq!(
        refused(&outcome).2,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

#[test]
fn status_and_spec_are_written_apart() {
    let mut world = World::new();
    world.make("persistentvolumes", volume("v"));
    let both = json!({"spec": {"capacity": {"storage": "2Gi"}}, "status": {"phase": "Available"}});
    let (_, after) = world.merge("persistentvolumes/v", both.clone());
    assert_eq!((&after["spec"]["capacity"]["storage"], &after["status"]["phase"]), (&json!("2Gi"), &json!("Pending")));
    let more = json!({"spec": {"capacity": {"storage": "3Gi"}}, "status": {"phase": "Available"}, "metadata": {"labels": {"a": "b"}}});
    let (_, after) = world.merge("persistentvolumes/v/status", more);
    assert_eq!(
        (&after["spec"]["capacity"]["storage"], &after["status"]["phase"]),
        (&json!("2Gi"), &json!("Available"))
    );
    assert_eq!(after["metadata"]["labels"]["a"], "b");
}

#[test]
fn applying_takes_conflicts_or_force() {
    let mut world = World::new();
    let body =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": value}});
    let apply = Verb::Patch(PatchType::Apply);
    assert_eq!(world.send(apply, "configmaps/default/a?fieldManager=one", body("1")).0, 201);
    let outcome = world.send(apply, "configmaps/default/a?fieldManager=two", body("2"));
    assert_eq!(refused(&outcome), (409, "Conflict", "Apply failed with 1 conflict: conflict with \"one\": .data.x"));
    assert_eq!(outcome.1["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(world.send(apply, "configmaps/default/a?fieldManager=two&force=true", body("2")).0, 200);
    let outcome = world.send(apply, "configmaps/default/a", body("2"));
    assert_eq!(
        refused(&outcome).2,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
}

#[test]
fn a_restored_server_goes_on_where_the_last_one_was() {
    let mut world = World::with(Settings { journal: true, ..Settings::default() });
    world.make("configmaps/default", config_map("kept"));
    world.make("configmaps/default", config_map("gone"));
    world.delete("configmaps/default/gone", Value::Null);
    let mut held = std::collections::BTreeMap::new();
    for record in world.api.take_records() {
        match record.value {
            Some(value) => held.insert((record.space, record.key.to_string()), value),
            None => held.remove(&(record.space, record.key.to_string())),
        };
    }
    let revision = world.api.revision();
    let objects = held.into_iter().map(|((space, key), value)| (space, key, value));
    let moment = world.moment();
    let mut again = Api::restore(Settings::default(), revision, objects, &moment).expect("its own records");
    assert_eq!(again.revision(), revision);
    let kept = again.handle(&moment, &request(Verb::Get, "configmaps/default/kept", Value::Null)).expect("kept");
    assert_eq!(json_of(kept.body), world.get("configmaps/default/kept").1);
    assert!(again.handle(&moment, &request(Verb::Get, "configmaps/default/gone", Value::Null)).is_err());
    let kind = target("configmaps/default").kind;
    assert_eq!(again.changes_after(kind, revision - 1, revision, 9).expect_err("not held").reason, "Expired");
    let made = again.handle(&moment, &request(Verb::Create, "configmaps/default", config_map("new"))).expect("made");
    assert_eq!(made.revision, revision + 1);
}
