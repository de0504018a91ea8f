//! Provisioning records: grouped in pages, and each compared on its own.

use std::sync::Arc;

use bindery_engine::{Answer, RequestError};
use bindery_model::{Attempt, Kind, Object, ObjectKey, Record};
use bindery_rules_api::{Create, RecordEdit, Request, Rule, Task, Write};
use bindery_runtime::{ChangeReceiver, Records, WatchStatus, WatchedChange, change_queue};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::server::{Call, Requests, server};

static RULE: Rule = Rule { name: "test.record", why: "A test writes a record." };

fn content(instance: &str) -> Value {
    json!({"claim": {"namespace": "ns", "name": "c"}, "attempt": {"instance": instance, "number": 1}, "request": {}})
}

fn page(version: u64, data: Map<String, Value>) -> Value {
    let metadata = json!({"name": "bindery-provisioning-d-0", "uid": "p", "resourceVersion": version.to_string()});
    json!({"metadata": metadata, "data": data})
}

fn data(records: &[(&str, &str)]) -> Map<String, Value> {
    records.iter().map(|(name, instance)| ((*name).to_owned(), content(instance).to_string().into())).collect()
}

/// The page after a patch.
fn patched(version: u64, mut before: Map<String, Value>, call: &Call) -> Value {
    for (name, entry) in call.body["data"].as_object().expect("data") {
        before.insert(name.clone(), entry.clone());
    }
    before.retain(|_, entry| !entry.is_null());
    page(version, before)
}

/// Records in these pages, with the watch that follows the list.
async fn start(pages: &[Value]) -> (Records, Requests, ChangeReceiver, Call) {
    let (api, mut requests) = server();
    let (records, task) = Records::new(Arc::new(api), "ns", "d");
    let (sender, mut changes) = change_queue();
    tokio::spawn(task.run(sender, WatchStatus::default()));
    requests.next("labelSelector").await.answer(200, &[list(pages)]);
    let watch = requests.next("watch=1").await;
    assert!(matches!(changes.next().await, WatchedChange::Listed(Kind::Record, _, _)));
    (records, requests, changes, watch)
}

fn list(pages: &[Value]) -> Value {
    json!({"metadata": {"resourceVersion": "5"}, "items": pages})
}

fn send(records: &Records, request: Request) -> JoinHandle<Answer> {
    let records = records.clone();
    tokio::spawn(async move { records.send(&request).await })
}

/// Lets all other tasks run until they wait: there is one thread.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn create(name: &str) -> Request {
    let key = ObjectKey::record(name);
    Request::Create(Create { key, body: content("a"), purpose: &RULE, task: Task::SaveRecord, then: Vec::new() })
}

fn write(name: &str, version: u64, edit: RecordEdit) -> Request {
    let metadata = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
    let record = Record::from_json(json!({"metadata": metadata}).to_string().as_bytes()).expect("it has a name");
    Request::Write(Box::new(Write::record(&RULE, &record, edit)))
}

fn begin() -> RecordEdit {
    RecordEdit::Begin(Attempt { instance: "b".into(), number: 2 })
}

fn conflict() -> Value {
    json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "changed"})
}

async fn written(answer: JoinHandle<Answer>) -> u64 {
    let answer = answer.await.expect("no panic");
    let Answer::Written(Object::Record(record)) = answer else { panic!("not written: {answer:?}") };
    record.meta.version
}

#[tokio::test]
async fn changes_that_arrive_during_a_write_are_made_by_one_write() {
    let (records, mut requests, _, _watch) = start(&[]).await;
    let first = send(&records, create("first"));
    let created = requests.next("/api/v1/namespaces/ns/configmaps").await;
    assert_eq!(created.body["metadata"]["name"], "bindery-provisioning-d-0");
    let others: Vec<JoinHandle<Answer>> = (0..50).map(|n| send(&records, create(&format!("r{n}")))).collect();
    settle().await;
    assert!(requests.is_empty(), "one write at a time");
    created.answer(201, &[page(6, data(&[("first", "a")]))]);
    assert_eq!(written(first).await, 1);
    let group = requests.next("/configmaps/bindery-provisioning-d-0").await;
    assert_eq!(group.body["metadata"], json!({"uid": "p", "resourceVersion": "6"}), "it is conditional");
    assert_eq!(group.body["data"].as_object().map(Map::len), Some(50));
    let after = patched(7, data(&[("first", "a")]), &group);
    group.answer(200, &[after]);
    let mut versions = Vec::new();
    for other in others {
        versions.push(written(other).await);
    }
    versions.sort_unstable();
    assert_eq!(versions, (2..=51).collect::<Vec<_>>(), "no two records have the same version");
    assert!(requests.is_empty());
    assert_eq!(records.attempt(&"r7".into()).map(|attempt| attempt.number), Some(1));
}

#[tokio::test]
async fn after_a_conflict_only_records_that_changed_are_rejected() {
    let (records, mut requests, mut changes, _watch) = start(&[page(4, data(&[("one", "a"), ("two", "a")]))]).await;
    let one = send(&records, write("one", 1, begin()));
    let rejected = requests.next("/configmaps/bindery-provisioning-d-0").await;
    let two = send(&records, write("two", 2, RecordEdit::Remove));
    settle().await;
    rejected.answer(409, &[conflict()]);
    // Another instance has changed the first one.
    let theirs = page(8, data(&[("one", "other"), ("two", "a")]));
    requests.next("labelSelector").await.answer(200, &[list(&[theirs])]);
    assert!(matches!(one.await, Ok(Answer::Rejected(RequestError::Conflict))));
    assert!(matches!(changes.next().await, WatchedChange::Changed(object) if object.meta().version == 3));
    let retried = requests.next("/configmaps/bindery-provisioning-d-0").await;
    assert_eq!(retried.body["metadata"]["resourceVersion"], "8");
    assert_eq!(retried.body["data"], json!({"two": null}), "the second one has not changed");
    retried.answer(200, &[page(9, data(&[("one", "other")]))]);
    assert!(matches!(two.await, Ok(Answer::Written(Object::Record(record))) if record.deleting));
    assert!(matches!(changes.next().await, WatchedChange::Deleted(key, 4) if key.name == "two"));
}

#[tokio::test]
async fn lost_answers_are_unknown_and_a_read_is_live() {
    let (records, mut requests, _, _watch) = start(&[page(4, data(&[("one", "a")]))]).await;
    let one = send(&records, write("one", 1, begin()));
    let unavailable = json!({"kind": "Status", "code": 504, "message": "timeout"});
    requests.next("/configmaps/bindery-provisioning-d-0").await.answer(504, &[unavailable]);
    assert!(matches!(one.await, Ok(Answer::Rejected(RequestError::Unknown(504, _)))));
    let read = send(&records, Request::Read(ObjectKey::record("one")));
    requests.next("labelSelector").await.answer(200, &[list(&[page(6, data(&[("one", "b")]))])]);
    let Ok(Answer::Read(Some(Object::Record(record)))) = read.await else { panic!("it exists") };
    assert_eq!((record.meta.version, record.attempt.instance.as_str()), (2, "b"));
}
