//! Bindings and updates of pods.

use super::*;

fn binding(name: &str, more: Value) -> Value {
    let mut binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    for (field, value) in more.as_object().into_iter().flatten() {
        binding["metadata"][field] = value.clone();
    }
    binding
}

#[test]
fn a_binding_must_match_the_pod_it_names() {
    let mut server = TestServer::new();
    server.make("pods/default", pod("p"));
    let outcome = server.create("pods/default/p/binding", binding("q", json!({})));
    assert_eq!(rejected(&outcome), (400, "BadRequest", "name in URL does not match name in Binding object"));
    let outcome = server.create("pods/default/p/binding", binding("p", json!({"uid": "other"})));
    assert!(rejected(&outcome).2.starts_with("Operation cannot be fulfilled on pods \"p\": StorageError"));
    assert_eq!(server.create("pods/default/p/binding", binding("p", json!({"labels": {"a": "b"}}))).0, 201);
    assert_eq!(server.get("pods/default/p").1["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn a_binding_may_require_a_resource_version() {
    let mut server = TestServer::new();
    server.make("pods/default", pod("p"));
    let before = server.get("pods/default/p").1["metadata"]["resourceVersion"].clone();
    server.merge("pods/default/p/status", json!({"status": {"nominatedNodeName": "m"}}));
    let outcome = server.create("pods/default/p/binding", binding("p", json!({"resourceVersion": before})));
    assert!(rejected(&outcome).2.contains("Precondition failed: ResourceVersion in precondition: "), "{outcome:?}");
    let now = server.get("pods/default/p").1["metadata"]["resourceVersion"].clone();
    assert_eq!(server.create("pods/default/p/binding", binding("p", json!({"resourceVersion": now}))).0, 201);
    let bound = server.get("pods/default/p").1;
    assert_eq!((&bound["spec"]["nodeName"], &bound["status"]["nominatedNodeName"]), (&json!("n"), &Value::Null));
}

#[test]
fn a_rejected_pod_update_shows_the_difference() {
    let mut server = TestServer::new();
    server.make("pods/default", pod("p"));
    let outcome = server.merge("pods/default/p", json!({"spec": {"restartPolicy": "Never"}}));
    let why = rejected(&outcome).2;
    assert!(why.contains("\n- \"RestartPolicy\": \"Always\",\n+ \"RestartPolicy\": \"Never\",\n"), "{why}");
}
