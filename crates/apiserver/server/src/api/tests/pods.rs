//! Pods: bound once, changed little.

use super::*;

fn binding(name: &str, more: Value) -> Value {
    let mut binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}});
    for (field, value) in more.as_object().into_iter().flatten() {
        binding["metadata"][field] = value.clone();
    }
    binding
}

#[test]
fn a_binding_is_of_the_pod_it_names() {
    let mut world = World::new();
    world.make("pods/default", pod("p"));
    let outcome = world.create("pods/default/p/binding", binding("q", json!({})));
    assert_eq!(refused(&outcome), (400, "BadRequest", "name in URL does not match name in Binding object"));
    let outcome = world.create("pods/default/p/binding", binding("p", json!({"uid": "other"})));
    assert!(refused(&outcome).2.starts_with("Operation cannot be fulfilled on pods \"p\": StorageError"));
    assert_eq!(world.create("pods/default/p/binding", binding("p", json!({"labels": {"a": "b"}}))).0, 201);
    assert_eq!(world.get("pods/default/p").1["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn a_binding_may_ask_for_a_state_of_the_pod() {
    let mut world = World::new();
    world.make("pods/default", pod("p"));
    let before = world.get("pods/default/p").1["metadata"]["resourceVersion"].clone();
    world.merge("pods/default/p/status", json!({"status": {"nominatedNodeName": "m"}}));
    let outcome = world.create("pods/default/p/binding", binding("p", json!({"resourceVersion": before})));
    assert!(refused(&outcome).2.contains("Precondition failed: ResourceVersion in precondition: "), "{outcome:?}");
    let now = world.get("pods/default/p").1["metadata"]["resourceVersion"].clone();
    assert_eq!(world.create("pods/default/p/binding", binding("p", json!({"resourceVersion": now}))).0, 201);
    let bound = world.get("pods/default/p").1;
    assert_eq!((&bound["spec"]["nodeName"], &bound["status"]["nominatedNodeName"]), (&json!("n"), &Value::Null));
}

#[test]
fn a_refused_change_of_a_pod_shows_what_differs() {
    let mut world = World::new();
    world.make("pods/default", pod("p"));
    let outcome = world.merge("pods/default/p", json!({"spec": {"restartPolicy": "Never"}}));
    let why = refused(&outcome).2;
    assert!(why.contains("\n- \"RestartPolicy\": \"Always\",\n+ \"RestartPolicy\": \"Never\",\n"), "{why}");
}
