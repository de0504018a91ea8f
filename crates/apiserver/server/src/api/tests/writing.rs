//! Creating and updating.

use super::*;

#[test]
fn a_new_object_gets_a_uid_and_a_resource_version() {
    let mut server = TestServer::new();
    let before = server.api.revision();
    let created = server.make("configmaps/default", config_map("a"));
    assert_eq!(created["metadata"]["resourceVersion"], (before + 1).to_string());
    assert_eq!(created["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(text(&created, &["metadata", "uid"]).len(), 36);
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "tester");
    assert_eq!(server.get("configmaps/default/a"), (200, created));
}

#[test]
fn the_same_seed_gives_the_same_uid() {
    let one = TestServer::new().make("configmaps/default", config_map("a"));
    let other = TestServer::new().make("configmaps/default", config_map("a"));
    assert_eq!(one, other);
}

#[test]
fn a_duplicate_name_is_rejected() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("a"));
    let outcome = server.create("configmaps/default", config_map("a"));
    assert_eq!(rejected(&outcome), (409, "AlreadyExists", "configmaps \"a\" already exists"));
}

#[test]
fn names_are_generated_from_a_prefix() {
    let mut server = TestServer::new();
    let created = server.make("configmaps/default", json!({"metadata": {"generateName": "made-"}}));
    let name = text(&created, &["metadata", "name"]);
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    let long = server.make("configmaps/default", json!({"metadata": {"generateName": "x".repeat(70)}}));
    assert_eq!(text(&long, &["metadata", "name"]).len(), 63);
}

#[test]
fn nothing_is_created_in_a_missing_or_terminating_namespace() {
    let mut server = TestServer::new();
    let outcome = server.create("configmaps/nowhere", config_map("a"));
    assert_eq!(rejected(&outcome), (404, "NotFound", "namespaces \"nowhere\" not found"));
    server.make("namespaces", json!({"metadata": {"name": "going"}}));
    server.delete("namespaces/going", Value::Null);
    let outcome = server.create("configmaps/going", config_map("a"));
    let why =
        "configmaps \"a\" is forbidden: unable to create new content in namespace going because it is being terminated";
    assert_eq!(rejected(&outcome), (403, "Forbidden", why));
    assert_eq!(outcome.1["details"]["causes"][0]["reason"], "NamespaceTerminating");
}

#[test]
fn an_outdated_resource_version_is_a_conflict() {
    let mut server = TestServer::new();
    let first = server.make("configmaps/default", config_map("a"));
    let mut body = config_map("a");
    body["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    body["data"]["x"] = "2".into();
    assert_eq!(server.update("configmaps/default/a", body.clone()).0, 200);
    let outcome = server.update("configmaps/default/a", body);
    let why = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest \
               version and try again";
    assert_eq!(rejected(&outcome), (409, "Conflict", why));
    let revision = first["metadata"]["resourceVersion"].clone();
    let outcome = server.merge("configmaps/default/a", json!({"metadata": {"resourceVersion": revision}}));
    assert_eq!(outcome.0, 409);
}

#[test]
fn a_lease_needs_a_resource_version_but_can_be_created_by_put() {
    let mut server = TestServer::new();
    let body = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    assert_eq!(server.update("leases.coordination.k8s.io/default/l", body.clone()).0, 201);
    let outcome = server.update("leases.coordination.k8s.io/default/l", body);
    let why = "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(rejected(&outcome), (422, "Invalid", why));
}

#[test]
fn an_update_without_changes_is_not_stored() {
    let mut server = TestServer::new();
    let created = server.make("configmaps/default", config_map("a"));
    let before = server.api.revision();
    server.wait(100);
    assert_eq!(server.update("configmaps/default/a", config_map("a")), (200, created.clone()));
    assert_eq!(server.merge("configmaps/default/a", json!({"data": {"x": "1"}})), (200, created));
    assert_eq!(server.api.revision(), before);
}

#[test]
fn a_dry_run_stores_nothing() {
    let mut server = TestServer::new();
    let before = server.api.revision();
    let (code, shown) = server.create("configmaps/default?dryRun=All", config_map("a"));
    assert_eq!((code, shown["metadata"].get("resourceVersion")), (201, None));
    assert_eq!(server.get("configmaps/default/a").0, 404);
    server.make("configmaps/default", config_map("b"));
    let (_, shown) = server.merge("configmaps/default/b?dryRun=All", json!({"data": {"x": "2"}}));
    assert_eq!(shown["data"]["x"], "2");
    server.send(Verb::Delete, "configmaps/default/b", json!({"dryRun": ["All"]}));
    assert_eq!(server.get("configmaps/default/b").1["data"]["x"], "1");
    assert_eq!(server.api.revision(), before + 1);
}

#[test]
fn unknown_fields_cause_warnings_or_errors_as_requested() {
    let mut server = TestServer::new();
    let mut body = config_map("a");
    body["foo"] = 1.into();
    let context = server.context();
    let answer =
        server.api.handle(&context, &request(Verb::Create, "configmaps/default", body.clone())).expect("warned");
    assert_eq!(answer.warnings, ["unknown field \"foo\""]);
    let outcome = server.create("configmaps/default?fieldValidation=Strict", body.clone());
    let why =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\"";
    assert_eq!(rejected(&outcome), (400, "BadRequest", why));
    body["metadata"]["name"] = "b".into();
    let request = request(Verb::Create, "configmaps/default?fieldValidation=Ignore", body);
    assert!(server.api.handle(&context, &request).expect("ignored").warnings.is_empty());
}

#[test]
fn name_and_namespace_of_path_and_body_must_match() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("a"));
    let outcome = server.update("configmaps/default/a", config_map("b"));
    assert_eq!(rejected(&outcome).2, "the name of the object (b) does not match the name on the URL (a)");
    let mut body = config_map("a");
    body["metadata"]["namespace"] = "other".into();
    let outcome = server.update("configmaps/default/a", body);
    assert_eq!(
        rejected(&outcome).2,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

#[test]
fn status_and_spec_are_written_separately() {
    let mut server = TestServer::new();
    server.make("persistentvolumes", volume("v"));
    let both = json!({"spec": {"capacity": {"storage": "2Gi"}}, "status": {"phase": "Available"}});
    let (_, after) = server.merge("persistentvolumes/v", both.clone());
    assert_eq!((&after["spec"]["capacity"]["storage"], &after["status"]["phase"]), (&json!("2Gi"), &json!("Pending")));
    let more = json!({"spec": {"capacity": {"storage": "3Gi"}}, "status": {"phase": "Available"}, "metadata": {"labels": {"a": "b"}}});
    let (_, after) = server.merge("persistentvolumes/v/status", more);
    assert_eq!(
        (&after["spec"]["capacity"]["storage"], &after["status"]["phase"]),
        (&json!("2Gi"), &json!("Available"))
    );
    assert_eq!(after["metadata"]["labels"]["a"], "b");
}

#[test]
fn a_conflicting_apply_needs_force() {
    let mut server = TestServer::new();
    let body =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": value}});
    let apply = Verb::Patch(PatchType::Apply);
    assert_eq!(server.send(apply, "configmaps/default/a?fieldManager=one", body("1")).0, 201);
    let outcome = server.send(apply, "configmaps/default/a?fieldManager=two", body("2"));
    assert_eq!(rejected(&outcome), (409, "Conflict", "Apply failed with 1 conflict: conflict with \"one\": .data.x"));
    assert_eq!(outcome.1["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(server.send(apply, "configmaps/default/a?fieldManager=two&force=true", body("2")).0, 200);
    let outcome = server.send(apply, "configmaps/default/a", body("2"));
    assert_eq!(
        rejected(&outcome).2,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
}

#[test]
fn a_restored_server_continues_from_the_last_revision() {
    let mut server = TestServer::with(Settings { journal: true, ..Settings::default() });
    server.make("configmaps/default", config_map("kept"));
    server.make("configmaps/default", config_map("gone"));
    server.delete("configmaps/default/gone", Value::Null);
    let mut held = std::collections::BTreeMap::new();
    for record in server.api.take_records() {
        match record.value {
            Some(value) => held.insert((record.bucket, record.key.to_string()), value),
            None => held.remove(&(record.bucket, record.key.to_string())),
        };
    }
    let revision = server.api.revision();
    let objects = held.into_iter().map(|((bucket, key), value)| (bucket, key, value));
    let context = server.context();
    let mut again = Api::restore(Settings::default(), revision, objects, &context).expect("its own records");
    assert_eq!(again.revision(), revision);
    let load_or_create =
        again.handle(&context, &request(Verb::Get, "configmaps/default/kept", Value::Null)).expect("kept");
    assert_eq!(json_of(load_or_create.body), server.get("configmaps/default/kept").1);
    assert!(again.handle(&context, &request(Verb::Get, "configmaps/default/gone", Value::Null)).is_err());
    let kind = target("configmaps/default").kind;
    assert_eq!(again.changes_after(kind, revision - 1, revision, 9).expect_err("not held").reason, "Expired");
    let created =
        again.handle(&context, &request(Verb::Create, "configmaps/default", config_map("new"))).expect("made");
    assert_eq!(created.revision, revision + 1);
}

#[test]
fn a_full_store_accepts_no_growth_but_deletions() {
    let mut server = TestServer::with(Settings { store_bytes: 20_000, ..Settings::default() });
    let map = |name: &str, bytes: usize| json!({"metadata": {"name": name, "finalizers": ["a.b/c"]}, "data": {"a": "x".repeat(bytes)}});
    server.make("configmaps/default", map("a", 8_000));
    let (code, status) = server.create("configmaps/default", map("b", 12_000));
    assert_eq!((code, &status["reason"]), (507, &json!("InsufficientStorage")), "{status}");
    let message = status["message"].as_str().expect("a message");
    assert!(message.starts_with("etcdserver: mvcc: database space exceeded"), "{message}");
    assert_eq!(server.merge("configmaps/default/a", json!({"data": {"b": "x".repeat(12_000)}})).0, 507);
    assert_eq!(server.merge("configmaps/default/a", json!({"data": {"a": "x"}})).0, 200, "it shrinks");
    server.make("configmaps/default", map("b", 12_000));
    // Deletions and the removal of finalizers always work.
    assert_eq!(server.delete("configmaps/default/b", Value::Null).0, 200);
    assert_eq!(server.merge("configmaps/default/b", json!({"metadata": {"finalizers": null}})).0, 200);
    assert_eq!(server.get("configmaps/default/b").0, 404);
    server.make("configmaps/default", map("c", 12_000));
}

#[test]
fn an_object_beyond_etcds_limit_is_rejected() {
    let mut server = TestServer::new();
    let pod = |bytes: usize| {
        let container = json!({"name": "a", "image": "b", "args": ["x".repeat(bytes)]});
        json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    };
    let (code, status) = server.create("pods/default", pod(1_600_000));
    assert_eq!((code, &status["message"]), (500, &json!("etcdserver: request is too large")));
    server.make("pods/default", pod(1_400_000));
}
