//! Watches.

use super::*;

/// The next events of a watch, as `Added name@revision`.
fn events(server: &TestServer, watch: &mut Watch) -> Vec<String> {
    let changes = server.api.changes_after(watch.kind, watch.revision, server.api.revision(), 100).expect("held");
    watch.revision = server.api.revision();
    let selected = changes.iter().filter_map(|change| watch.select(change));
    selected
        .map(|event| {
            let object: Value = serde_json::from_slice(&event.object).expect("JSON");
            let of = |field| text(&object, &["metadata", field]).to_owned();
            format!("{:?} {}@{}", event.kind, of("name"), of("resourceVersion"))
        })
        .collect()
}

fn watch(server: &TestServer, path: &str, query: &str) -> Watch {
    server.api.watch(&target(path), &options(query)).expect("a watch")
}

#[test]
fn a_watch_receives_changes_after_its_revision() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("old"));
    let from = server.api.revision();
    let mut watch = watch(&server, "configmaps/default", &format!("resourceVersion={from}"));
    assert!(watch.initial.is_empty());
    server.make("configmaps/default", config_map("a"));
    server.make("secrets/default", json!({"metadata": {"name": "s"}}));
    server.make("configmaps/kube-public", config_map("elsewhere"));
    server.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    server.delete("configmaps/default/a", Value::Null);
    let at = |n| from + n;
    assert_eq!(
        events(&server, &mut watch),
        [format!("Added a@{}", at(1)), format!("Modified a@{}", at(4)), format!("Deleted a@{}", at(5))]
    );
    assert_eq!(events(&server, &mut watch), Vec::<String>::new());
}

#[test]
fn a_watch_without_revision_starts_with_the_current_objects() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("a"));
    let plain = watch(&server, "configmaps/default", "");
    assert_eq!((plain.initial.len(), plain.mark_initial_end), (1, false));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let streamed = watch(&server, "configmaps/default", query);
    assert_eq!(
        (streamed.initial.len(), streamed.mark_initial_end, streamed.revision),
        (1, true, server.api.revision())
    );
    let none = watch(&server, "configmaps/default", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    assert!(none.initial.is_empty());
    let error =
        server.api.watch(&target("configmaps/default"), &options("sendInitialEvents=true")).expect_err("no match");
    assert_eq!(error.code, Some(422));
}

#[test]
fn objects_that_start_or_stop_matching_are_added_or_deleted() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("a"));
    let from = server.api.revision();
    let mut watch = watch(&server, "configmaps/default", &format!("resourceVersion={from}&labelSelector=on"));
    server.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    server.merge("configmaps/default/a", json!({"metadata": {"labels": {"on": "1"}}}));
    server.merge("configmaps/default/a", json!({"metadata": {"labels": {"on": "2"}}}));
    server.merge("configmaps/default/a", json!({"metadata": {"labels": null}}));
    assert_eq!(
        events(&server, &mut watch),
        [format!("Added a@{}", from + 2), format!("Modified a@{}", from + 3), format!("Deleted a@{}", from + 4)]
    );
    let changes = server.api.changes_after(watch.kind, from + 3, from + 4, 1).expect("held");
    let last = watch.select(&changes[0]).expect("selected before");
    let last: Value = serde_json::from_slice(&last.object).expect("JSON");
    assert_eq!(last["metadata"]["labels"]["on"], "2", "the event has the last selected state");
}

#[test]
fn a_watch_that_falls_behind_history_gets_a_410() {
    let mut server = TestServer::with(Settings { history_changes: 2, ..Settings::default() });
    server.make("configmaps/default", config_map("a"));
    let stuck = watch(&server, "configmaps/default", "");
    for n in 0..5 {
        server.merge("configmaps/default/a", json!({"data": {"x": n.to_string()}}));
    }
    let now = server.api.revision();
    let gone = server.api.changes_after(stuck.kind, stuck.revision, now, 100).expect_err("too late");
    assert_eq!((gone.code, gone.reason), (Some(410), "Expired"));
    assert_eq!(gone.message, format!("too old resource version: {} ({})", stuck.revision, now - 2));
}

#[test]
fn a_single_object_can_be_watched_by_name() {
    let mut server = TestServer::new();
    server.make("configmaps/default", config_map("a"));
    let mut watch = watch(&server, "configmaps/default/b", "");
    assert!(watch.initial.is_empty());
    server.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    server.make("configmaps/default", config_map("b"));
    assert_eq!(events(&server, &mut watch), [format!("Added b@{}", server.api.revision())]);
}

#[test]
fn removing_the_last_finalizer_sends_only_a_deleted_event() {
    let mut server = TestServer::new();
    server.make("persistentvolumes", volume("v"));
    server.delete("persistentvolumes/v", Value::Null);
    let from = server.api.revision();
    let mut watch = watch(&server, "persistentvolumes", &format!("resourceVersion={from}"));
    server.merge("persistentvolumes/v", json!({"metadata": {"finalizers": null}}));
    assert_eq!(events(&server, &mut watch), [format!("Deleted v@{}", from + 1)], "no MODIFIED event is sent");
}

#[test]
fn both_event_groups_watch_the_same_events() {
    let mut server = TestServer::new();
    let mut core = watch(&server, "events/default", "");
    let mut newer = watch(&server, "events.events.k8s.io/default", "");
    let event =
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}, "message": "m"});
    server.make("events/default", event);
    let kinds = [&mut core, &mut newer].map(|watch| {
        let changes = server.api.changes_after(watch.kind, watch.revision, server.api.revision(), 9).expect("held");
        let event = watch.select(&changes[0]).expect("selected");
        serde_json::from_slice::<Value>(&event.object).expect("JSON")
    });
    assert_eq!((&kinds[0]["apiVersion"], &kinds[0]["message"]), (&json!("v1"), &json!("m")));
    assert_eq!((&kinds[1]["apiVersion"], &kinds[1]["note"]), (&json!("events.k8s.io/v1"), &json!("m")));
}
