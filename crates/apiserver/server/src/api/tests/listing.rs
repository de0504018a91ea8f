//! Reading many.

use super::*;

fn some(world: &mut World, count: usize) {
    for n in 0..count {
        let body = json!({"metadata": {"name": format!("c{n}"), "labels": {"even": (n % 2 == 0).to_string(), "n": n.to_string()}}});
        world.make("configmaps/default", body);
    }
}

#[test]
fn pages_show_one_moment_whatever_happens_in_between() {
    let mut world = World::new();
    some(&mut world, 5);
    let (_, first) = world.list("configmaps/default?limit=2");
    assert_eq!(
        (names_in(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["c0".to_owned(), "c1".to_owned()], &json!(3))
    );
    world.delete("configmaps/default/c2", Value::Null);
    world.make("configmaps/default", config_map("c9"));
    let token = text(&first, &["metadata", "continue"]).to_owned();
    let (_, rest) = world.list(&format!("configmaps/default?continue={token}"));
    assert_eq!(names_in(&rest), ["c2", "c3", "c4"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(rest["metadata"].get("continue"), None);
}

#[test]
fn a_page_that_is_too_old_comes_with_a_way_to_go_on() {
    let mut world = World::with(Settings { history_changes: 1, ..Settings::default() });
    some(&mut world, 4);
    let (_, first) = world.list("configmaps/default?limit=2");
    world.make("configmaps/default", config_map("x1"));
    world.make("configmaps/default", config_map("x2"));
    let token = text(&first, &["metadata", "continue"]).to_owned();
    let (code, gone) = world.list(&format!("configmaps/default?limit=2&continue={token}"));
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    let token = text(&gone, &["metadata", "continue"]).to_owned();
    assert_eq!(world.names(&format!("configmaps/default?continue={token}")), ["c2", "c3", "x1", "x2"]);
}

#[test]
fn a_list_can_be_of_the_past_but_not_of_the_future() {
    let mut world = World::new();
    some(&mut world, 2);
    let then = world.api.revision();
    some_more(&mut world);
    let path = |revision: u64, rest: &str| format!("configmaps/default?resourceVersion={revision}{rest}");
    assert_eq!(world.names(&path(then, "&resourceVersionMatch=Exact")), ["c0", "c1"]);
    assert_eq!(world.names(&path(then, "&limit=10")), ["c0", "c1"]);
    assert_eq!(world.names(&path(then, "")), ["c0", "c1", "d"]);
    assert_eq!(world.names(&path(0, "&limit=1")), ["c0", "c1", "d"], "the limit does not count for revision 0");
    let outcome = world.list(&path(999, ""));
    let why = format!("Timeout: Too large resource version: 999, current: {}", world.api.revision());
    assert_eq!(refused(&outcome), (504, "Timeout", why.as_str()));
}

fn some_more(world: &mut World) {
    world.make("configmaps/default", config_map("d"));
}

#[test]
fn labels_and_fields_select() {
    let mut world = World::new();
    some(&mut world, 4);
    for (selector, names) in [
        ("labelSelector=even=true", "c0 c2"),
        ("labelSelector=even!=true", "c1 c3"),
        ("labelSelector=n in (1,3)", "c1 c3"),
        ("labelSelector=n notin (1,3),even", "c0 c2"),
        ("labelSelector=n>1", "c2 c3"),
        ("labelSelector=!even", ""),
        ("labelSelector=absent!=x", "c0 c1 c2 c3"),
        ("fieldSelector=metadata.name=c1", "c1"),
        ("fieldSelector=metadata.name!=c1,metadata.namespace=default", "c0 c2 c3"),
        ("fieldSelector=metadata.namespace=other", ""),
    ] {
        assert_eq!(world.names(&format!("configmaps/default?{selector}")).join(" "), names, "{selector}");
    }
}

#[test]
fn selectors_that_make_no_sense_are_refused_in_upstreams_words() {
    let mut world = World::new();
    for (selector, why) in [
        ("labelSelector=a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("labelSelector=a in b", "unable to parse requirement: found 'b' expected: '('"),
        (
            "fieldSelector=foo=bar",
            "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
    ] {
        assert_eq!(refused(&world.list(&format!("configmaps/default?{selector}"))), (400, "BadRequest", why));
    }
    let outcome = world.list("pods/default?fieldSelector=foo=bar");
    assert_eq!(refused(&outcome).2, "field label not supported: foo");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let mut world = World::new();
    for (query, why) in [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
    ] {
        let (code, status) = world.list(&format!("configmaps/default?{query}"));
        assert_eq!(code, 422);
        assert!(text(&status, &["message"]).ends_with(why), "{status}");
    }
}

#[test]
fn items_show_neither_kind_nor_version_and_all_namespaces_can_be_listed() {
    let mut world = World::new();
    world.make("configmaps/kube-public", config_map("p"));
    world.make("configmaps/default", config_map("d"));
    let (_, list) = world.list("configmaps");
    assert_eq!(names_in(&list), ["d", "p"]);
    assert_eq!((list["kind"].as_str(), list["items"][0].get("kind")), (Some("ConfigMapList"), None));
}
