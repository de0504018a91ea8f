//! Lists.

use super::*;

fn some(server: &mut TestServer, count: usize) {
    for n in 0..count {
        let body = json!({"metadata": {"name": format!("c{n}"), "labels": {"even": (n % 2 == 0).to_string(), "n": n.to_string()}}});
        server.make("configmaps/default", body);
    }
}

#[test]
fn all_pages_show_the_revision_of_the_first() {
    let mut server = TestServer::new();
    some(&mut server, 5);
    let (_, first) = server.list("configmaps/default?limit=2");
    assert_eq!(
        (names_in(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["c0".to_owned(), "c1".to_owned()], &json!(3))
    );
    server.delete("configmaps/default/c2", Value::Null);
    server.make("configmaps/default", config_map("c9"));
    let token = text(&first, &["metadata", "continue"]).to_owned();
    let (_, rest) = server.list(&format!("configmaps/default?continue={token}"));
    assert_eq!(names_in(&rest), ["c2", "c3", "c4"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(rest["metadata"].get("continue"), None);
}

#[test]
fn an_expired_continue_token_comes_with_a_new_one() {
    let mut server = TestServer::with(Settings { history_changes: 1, ..Settings::default() });
    some(&mut server, 4);
    let (_, first) = server.list("configmaps/default?limit=2");
    server.make("configmaps/default", config_map("x1"));
    server.make("configmaps/default", config_map("x2"));
    let token = text(&first, &["metadata", "continue"]).to_owned();
    let (code, gone) = server.list(&format!("configmaps/default?limit=2&continue={token}"));
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    let token = text(&gone, &["metadata", "continue"]).to_owned();
    assert_eq!(server.names(&format!("configmaps/default?continue={token}")), ["c2", "c3", "x1", "x2"]);
}

#[test]
fn a_list_can_show_a_past_revision_but_not_a_future_one() {
    let mut server = TestServer::new();
    some(&mut server, 2);
    let then = server.api.revision();
    some_more(&mut server);
    let path = |revision: u64, rest: &str| format!("configmaps/default?resourceVersion={revision}{rest}");
    assert_eq!(server.names(&path(then, "&resourceVersionMatch=Exact")), ["c0", "c1"]);
    assert_eq!(server.names(&path(then, "&limit=10")), ["c0", "c1"]);
    assert_eq!(server.names(&path(then, "")), ["c0", "c1", "d"]);
    assert_eq!(server.names(&path(0, "&limit=1")), ["c0", "c1", "d"], "the limit is ignored for revision 0");
    let outcome = server.list(&path(999, ""));
    let why = format!("Timeout: Too large resource version: 999, current: {}", server.api.revision());
    assert_eq!(rejected(&outcome), (504, "Timeout", why.as_str()));
}

fn some_more(server: &mut TestServer) {
    server.make("configmaps/default", config_map("d"));
}

#[test]
fn label_and_field_selectors_select_objects() {
    let mut server = TestServer::new();
    some(&mut server, 4);
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
        assert_eq!(server.names(&format!("configmaps/default?{selector}")).join(" "), names, "{selector}");
    }
}

#[test]
fn invalid_selectors_are_rejected_with_upstreams_messages() {
    let mut server = TestServer::new();
    for (selector, why) in [
        ("labelSelector=a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("labelSelector=a in b", "unable to parse requirement: found 'b' expected: '('"),
        (
            "fieldSelector=foo=bar",
            "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
    ] {
        assert_eq!(rejected(&server.list(&format!("configmaps/default?{selector}"))), (400, "BadRequest", why));
    }
    let outcome = server.list("pods/default?fieldSelector=foo=bar");
    assert_eq!(rejected(&outcome).2, "field label not supported: foo");
}

#[test]
fn contradictory_list_options_are_rejected() {
    let mut server = TestServer::new();
    for (query, why) in [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
    ] {
        let (code, status) = server.list(&format!("configmaps/default?{query}"));
        assert_eq!(code, 422);
        assert!(text(&status, &["message"]).ends_with(why), "{status}");
    }
}

#[test]
fn list_items_have_no_kind_and_all_namespaces_can_be_listed() {
    let mut server = TestServer::new();
    server.make("configmaps/kube-public", config_map("p"));
    server.make("configmaps/default", config_map("d"));
    let (_, list) = server.list("configmaps");
    assert_eq!(names_in(&list), ["d", "p"]);
    assert_eq!((list["kind"].as_str(), list["items"][0].get("kind")), (Some("ConfigMapList"), None));
}
