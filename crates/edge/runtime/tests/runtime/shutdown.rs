//! Stopping: nothing is sent once it has begun, and no request outlives it.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bindery_cache::{Cache, Change};
use bindery_engine::{Config, Engine};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{
    Failure, LiveReads, Operation, OperationOutput, Profile, Request, ResyncInterval, Rule, RuleSet, Verdict,
};
use bindery_runtime::{EngineHost, NoObserver, Observer, RunOperation};
use futures::future::BoxFuture;
use serde_json::json;

use crate::server::{Call, Requests, server};

static READS: Rule = Rule { name: "test.reads", why: "The volume and its copy are read one after the other." };

/// Reads a volume, then another one.
struct Reads;

impl RuleSet for Reads {
    fn profile(&self) -> Profile {
        Profile {
            name: "reads",
            component: "tests",
            resync: ResyncInterval::Rarely,
            watches: &[Kind::Volume],
            queues: &[(Kind::Volume, "volumes")],
        }
    }

    fn decide(&self, _: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        let next = if live_reads.has_read(key) { ObjectKey::volume("copy") } else { key.clone() };
        Verdict::request(&READS, Request::Read(next))
    }

    fn wake(&self, _: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        wake(change.key());
    }
}

struct NoOperations;

impl RunOperation for NoOperations {
    fn run(&self, _: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        Box::pin(std::future::ready(Err(Failure::new("there are no operations"))))
    }
}

fn volume() -> serde_json::Value {
    json!({"kind": "PersistentVolume", "metadata": {"name": "data", "uid": "u", "resourceVersion": "4"}})
}

/// A leader that has sent a request, which is not answered yet.
async fn busy() -> (EngineHost, Requests, Call) {
    let (api, mut requests) = server();
    let observer: Arc<dyn Observer> = Arc::new(NoObserver);
    let engine = Engine::new(Config::default(), vec![Box::new(Reads)]);
    let host = EngineHost::start(&Arc::new(api), engine, &observer, |_| Arc::new(NoOperations));
    host.set_leader(true).expect("it runs");
    requests.next("sendInitialEvents=true").await.answer(500, &[]);
    let list = json!({"kind": "PersistentVolumeList", "metadata": {"resourceVersion": "5"}, "items": [volume()]});
    requests.next("limit=500").await.answer(200, &[list]);
    // The watch and the first decision are concurrent. The watch stays open.
    let (first, second) = (requests.next("persistentvolumes").await, requests.next("persistentvolumes").await);
    let (watch, read) = if first.uri.contains("watch") { (first, second) } else { (second, first) };
    assert!(read.uri.ends_with("/persistentvolumes/data"), "{}", read.uri);
    tokio::spawn(watch.cancelled());
    (host, requests, read)
}

#[tokio::test]
async fn a_request_without_a_response_is_cancelled_when_leadership_is_lost() {
    let (host, requests, read) = busy().await;
    host.stop(Duration::ZERO).await;
    read.cancelled().await;
    assert!(requests.is_empty(), "nothing is sent any more");
}

#[tokio::test]
async fn a_request_that_was_sent_may_end_but_no_other_one_is_sent() {
    let (host, requests, read) = busy().await;
    let mut stop = std::pin::pin!(host.stop(Duration::from_secs(600)));
    let is_pending = std::future::poll_fn(|context| Poll::Ready(stop.as_mut().poll(context).is_pending())).await;
    assert!(is_pending, "it waits for the response");
    // This thread runs all tasks, so the engine task has stopped when it gets another turn.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    read.answer(200, &[volume()]);
    stop.await;
    assert!(requests.is_empty(), "the copy is not read any more");
}
