//! Watching.

use super::*;

/// What a watch is told from where it stands, as `ADDED name@revision`.
fn told(world: &World, watch: &mut Watch) -> Vec<String> {
    let changes = world.api.changes_after(watch.kind, watch.revision, world.api.revision(), 100).expect("held");
    watch.revision = world.api.revision();
    let events = changes.iter().filter_map(|change| watch.select(change));
    events
        .map(|event| {
            let object: Value = serde_json::from_slice(&event.object).expect("JSON");
            let of = |field| text(&object, &["metadata", field]).to_owned();
            format!("{:?} {}@{}", event.kind, of("name"), of("resourceVersion"))
        })
        .collect()
}

fn watch(world: &World, path: &str, query: &str) -> Watch {
    world.api.watch(&target(path), &options(query)).expect("granted")
}

#[test]
fn a_watch_is_told_what_happens_after_its_revision() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("old"));
    let from = world.api.revision();
    let mut watch = watch(&world, "configmaps/default", &format!("resourceVersion={from}"));
    assert!(watch.initial.is_empty());
    world.make("configmaps/default", config_map("a"));
    world.make("secrets/default", json!({"metadata": {"name": "s"}}));
    world.make("configmaps/kube-public", config_map("elsewhere"));
    world.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    world.delete("configmaps/default/a", Value::Null);
    let at = |n| from + n;
    assert_eq!(
        told(&world, &mut watch),
        [format!("Added a@{}", at(1)), format!("Modified a@{}", at(4)), format!("Deleted a@{}", at(5))]
    );
    assert_eq!(told(&world, &mut watch), Vec::<String>::new());
}

#[test]
fn a_watch_without_a_revision_begins_with_what_is_there() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("a"));
    let plain = watch(&world, "configmaps/default", "");
    assert_eq!((plain.initial.len(), plain.mark_initial_end), (1, false));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let streamed = watch(&world, "configmaps/default", query);
    assert_eq!((streamed.initial.len(), streamed.mark_initial_end, streamed.revision), (1, true, world.api.revision()));
    let none = watch(&world, "configmaps/default", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    assert!(none.initial.is_empty());
    let flaw =
        world.api.watch(&target("configmaps/default"), &options("sendInitialEvents=true")).expect_err("no match");
    assert_eq!(flaw.code, Some(422));
}

#[test]
fn what_comes_to_be_selected_is_added_and_what_ceases_to_be_is_deleted() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("a"));
    let from = world.api.revision();
    let mut watch = watch(&world, "configmaps/default", &format!("resourceVersion={from}&labelSelector=on"));
    world.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    world.merge("configmaps/default/a", json!({"metadata": {"labels": {"on": "1"}}}));
    world.merge("configmaps/default/a", json!({"metadata": {"labels": {"on": "2"}}}));
    world.merge("configmaps/default/a", json!({"metadata": {"labels": null}}));
    assert_eq!(
        told(&world, &mut watch),
        [format!("Added a@{}", from + 2), format!("Modified a@{}", from + 3), format!("Deleted a@{}", from + 4)]
    );
    let changes = world.api.changes_after(watch.kind, from + 3, from + 4, 1).expect("held");
    let last = watch.select(&changes[0]).expect("selected before");
    let last: Value = serde_json::from_slice(&last.object).expect("JSON");
    assert_eq!(last["metadata"]["labels"]["on"], "2", "it is shown as it was when it was selected last");
}

#[test]
fn whoever_comes_too_late_is_told_so_and_costs_nothing() {
    let mut world = World::with(Settings { history_changes: 2, ..Settings::default() });
    world.make("configmaps/default", config_map("a"));
    let stuck = watch(&world, "configmaps/default", "");
    for n in 0..5 {
        world.merge("configmaps/default/a", json!({"data": {"x": n.to_string()}}));
    }
    let now = world.api.revision();
    let gone = world.api.changes_after(stuck.kind, stuck.revision, now, 100).expect_err("too late");
    assert_eq!((gone.code, gone.reason), (Some(410), "Expired"));
    assert_eq!(gone.message, format!("too old resource version: {} ({})", stuck.revision, now - 2));
}

#[test]
fn one_object_can_be_watched_by_its_name() {
    let mut world = World::new();
    world.make("configmaps/default", config_map("a"));
    let mut watch = watch(&world, "configmaps/default/b", "");
    assert!(watch.initial.is_empty());
    world.merge("configmaps/default/a", json!({"data": {"x": "2"}}));
    world.make("configmaps/default", config_map("b"));
    assert_eq!(told(&world, &mut watch), [format!("Added b@{}", world.api.revision())]);
}

#[test]
fn the_last_state_before_a_removal_is_what_is_shown() {
    let mut world = World::new();
    world.make("persistentvolumes", volume("v"));
    world.delete("persistentvolumes/v", Value::Null);
    let from = world.api.revision();
    let mut watch = watch(&world, "persistentvolumes", &format!("resourceVersion={from}"));
    world.merge("persistentvolumes/v", json!({"metadata": {"finalizers": null}}));
    assert_eq!(told(&world, &mut watch), [format!("Deleted v@{}", from + 1)], "and nothing is said of the change");
}

#[test]
fn both_groups_of_events_are_told_of_the_same_ones() {
    let mut world = World::new();
    let mut core = watch(&world, "events/default", "");
    let mut newer = watch(&world, "events.events.k8s.io/default", "");
    let event =
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "x"}, "message": "m"});
    world.make("events/default", event);
    let kinds = [&mut core, &mut newer].map(|watch| {
        let changes = world.api.changes_after(watch.kind, watch.revision, world.api.revision(), 9).expect("held");
        let event = watch.select(&changes[0]).expect("told");
        serde_json::from_slice::<Value>(&event.object).expect("JSON")
    });
    assert_eq!((&kinds[0]["apiVersion"], &kinds[0]["message"]), (&json!("v1"), &json!("m")));
    assert_eq!((&kinds[1]["apiVersion"], &kinds[1]["note"]), (&json!("events.k8s.io/v1"), &json!("m")));
}
