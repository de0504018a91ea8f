//! The store alone.

use super::*;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number of seconds")
}

fn object(store: &Store, name: &str, data: &str) -> Stored {
    let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"a": "b"}}, "data": {"x": data}});
    encode(&value, store.revision() + 1)
}

fn put(store: &mut Store, name: &str, data: &str, now: i64) {
    let object = object(store, name, data);
    store.put("configmaps", &format!("default/{name}"), object, at(now));
}

fn remove(store: &mut Store, name: &str, now: i64) {
    let last = object(store, name, "last");
    store.remove("configmaps", &format!("default/{name}"), last, at(now));
}

fn names(store: &Store, revision: Option<u64>) -> Vec<String> {
    let listing = store.list("configmaps", "default/", "", revision).expect("within the window");
    listing.map(|(key, object)| format!("{key}@{}", object.revision)).collect()
}

#[test]
fn revision_and_kind_come_first_and_can_be_cut_off() {
    let store = Store::new(Settings::default(), 41);
    let stored = object(&store, "a", "1");
    let text = std::str::from_utf8(&stored.bytes).expect("text");
    assert!(
        text.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"42","labels""#),
        "{text}"
    );
    let newer = with_revision(&stored.bytes, 1000);
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&newer).expect("JSON")["metadata"]["resourceVersion"],
        "1000"
    );
    assert!(item(&stored.bytes).starts_with(b"\"metadata\":{\"resourceVersion\":\"42\""));
}

#[test]
fn a_past_revision_can_be_listed() {
    let mut store = Store::new(Settings::default(), 0);
    put(&mut store, "a", "1", 0);
    put(&mut store, "b", "1", 0);
    put(&mut store, "a", "2", 0);
    remove(&mut store, "b", 0);
    put(&mut store, "c", "1", 0);
    assert_eq!(names(&store, None), ["default/a@3", "default/c@5"]);
    assert_eq!(names(&store, Some(4)), ["default/a@3"]);
    assert_eq!(names(&store, Some(3)), ["default/a@3", "default/b@2"]);
    assert_eq!(names(&store, Some(2)), ["default/a@1", "default/b@2"]);
    assert_eq!(names(&store, Some(0)), Vec::<String>::new());
}

#[test]
fn history_is_bounded_by_age_count_and_bytes() {
    let mut store = Store::new(Settings { history_changes: 3, ..Settings::default() }, 0);
    for n in 0..5 {
        put(&mut store, "a", "1", n);
    }
    assert_eq!(store.changes_after("configmaps", 1, 9, 9).expect_err("too many changes since"), TooOld(2));
    assert_eq!(store.changes_after("configmaps", 2, 9, 9).expect("held").len(), 3);
    assert_eq!(store.compact(at(303)), Some(at(304)));
    assert_eq!(store.changes_after("configmaps", 3, 9, 9).expect_err("too old"), TooOld(4));

    let mut store = Store::new(Settings { history_bytes: 2000, ..Settings::default() }, 0);
    for _ in 0..100 {
        put(&mut store, "a", "1", 0);
    }
    assert!(store.replaced_bytes <= 2000 && store.replaced_bytes > 1000);
    assert!(store.changes_after("configmaps", 50, 100, 100).is_err());
}

#[test]
fn changes_are_limited_by_revision_and_count() {
    let mut store = Store::new(Settings::default(), 0);
    for _ in 0..5 {
        put(&mut store, "a", "1", 0);
    }
    let revisions = |after, until, limit| -> Vec<u64> {
        store.changes_after("configmaps", after, until, limit).expect("held").iter().map(|c| c.revision).collect()
    };
    assert_eq!(revisions(0, 3, 9), [1, 2, 3]);
    assert_eq!(revisions(1, 9, 2), [2, 3]);
    assert_eq!(revisions(5, 9, 2), [0; 0]);
}

#[test]
fn records_are_returned_once_and_only_with_a_journal() {
    let mut store = Store::new(Settings { journal: true, ..Settings::default() }, 0);
    put(&mut store, "a", "1", 0);
    remove(&mut store, "a", 0);
    let records = store.take_records();
    assert_eq!(records.iter().map(|r| (r.revision, r.value.is_some())).collect::<Vec<_>>(), [(1, true), (2, false)]);
    assert!(store.take_records().is_empty());
    let mut without = Store::new(Settings::default(), 0);
    put(&mut without, "a", "1", 0);
    assert!(without.take_records().is_empty());
}

#[test]
fn a_watch_that_waits_for_the_first_object_misses_nothing() {
    let mut store = Store::new(Settings::default(), 7);
    let elsewhere = object(&store, "a", "1");
    store.put("secrets", "default/a", elsewhere, at(0));
    put(&mut store, "first", "1", 0);
    let changes = store.changes_after("configmaps", 7, u64::MAX, 10).expect("history is complete");
    assert_eq!(changes.iter().map(|change| change.revision).collect::<Vec<_>>(), [9]);
    assert_eq!(store.changes_after("configmaps", 6, u64::MAX, 10).err(), Some(TooOld(7)));
}
