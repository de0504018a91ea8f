//! Publishing against an API server that rejects requests.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

use super::*;
use crate::fake::{FakeDriver, Serving};

const POLL: Duration = Duration::from_secs(3600);

/// An API server with CSIStorageCapacity objects, and classes that can be read or not.
#[derive(Default)]
struct Server {
    /// The status of a read of each class that does not succeed.
    unreadable: BTreeMap<String, u16>,
    objects: BTreeMap<String, Value>,
    created: usize,
}

impl Server {
    fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if path.contains("/storageclasses/") {
            return match self.unreadable.get(name) {
                Some(status) => (*status, json!({"message": "rejected"})),
                None => (200, json!({"metadata": {"name": name}, "parameters": {"class": name}})),
            };
        }
        match *method {
            Method::POST => {
                self.created += 1;
                let mut object: Value = serde_json::from_slice(body).expect("JSON");
                let name = format!("csisc-{}", self.created);
                object["metadata"]["name"] = name.as_str().into();
                self.objects.insert(name, object.clone());
                (201, object)
            }
            Method::DELETE => (200, self.objects.remove(name).unwrap_or_default()),
            Method::GET => (200, json!({"items": self.objects.values().collect::<Vec<_>>()})),
            ref other => panic!("{other} {path}"),
        }
    }
}

struct Bench {
    server: Arc<Mutex<Server>>,
    driver: Arc<FakeDriver>,
    publisher: CapacityPublisher,
    schedule: Schedule,
    _serving: Serving,
}

impl Bench {
    /// Two classes and two zones, all published.
    async fn start(name: &str) -> Bench {
        let server = Arc::new(Mutex::new(Server::default()));
        let answering = server.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = answering.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
                let (status, answer) = server.answer(&head.method, head.uri.path(), &body);
                let response = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
                Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).expect("a response"))
            }
        });
        let driver = Arc::new(FakeDriver::new("d.example.com").on_node(1 << 30, &[]));
        let socket = std::env::temp_dir().join(format!("bindery-capacity-{name}-{}.sock", std::process::id()));
        let serving = driver.serve(&socket).expect("served");
        let connected = Driver::connect(&socket.display().to_string(), Duration::from_secs(60), Arc::new(())).await;
        let publisher = CapacityPublisher {
            api: Arc::new(Api::new(Client::new(service, "default"), Duration::from_secs(60), None)),
            driver: connected.expect("connected"),
            identity: Identity { namespace: "ns".into(), driver: "d.example.com".into(), ..Identity::default() },
            poll: POLL,
            calls_max: 4,
            retry: RetryDelays { first: Duration::ZERO, max: Duration::ZERO },
            changes: Arc::default(),
            counts: Arc::default(),
        };
        let segment = |zone: &str| Segment::from([("zone".to_owned(), zone.to_owned())]);
        let targets =
            Targets { classes: ["fast", "slow"].map(str::to_owned).into(), segments: ["a", "b"].map(segment).into() };
        let mut schedule = Schedule::new(Instant::now(), publisher.poll, publisher.retry);
        schedule.set_targets(Instant::now(), &targets);
        let mut bench = Bench { server, driver, publisher, schedule, _serving: serving };
        bench.publish().await;
        assert_eq!(bench.published(), ["fast-a", "fast-b", "slow-a", "slow-b"]);
        assert_eq!(bench.polled(), ["fast-a", "fast-b", "slow-a", "slow-b"]);
        bench
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One round, as `run` does it.
    async fn publish(&mut self) {
        if let Some(changes) = futures::FutureExt::now_or_never(self.publisher.changes.next()) {
            changes.iter().for_each(|change| self.schedule.changed(Instant::now(), change));
        }
        self.publisher.publish(&mut self.schedule).await;
    }

    /// The classes and zones with an object.
    fn published(&self) -> Vec<String> {
        let name = |object: &Value| {
            let zone = object.pointer("/nodeTopology/matchLabels/zone").and_then(Value::as_str);
            format!("{}-{}", object["storageClassName"].as_str().unwrap_or_default(), zone.unwrap_or_default())
        };
        let mut names: Vec<String> = self.server().objects.values().map(name).collect();
        names.sort();
        names
    }

    /// The classes and zones for which GetCapacity was called since the last time.
    fn polled(&self) -> Vec<String> {
        let text = |call: &Value, at: &str| call.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = |call: &Value| format!("{}-{}", text(call, "/parameters/class"), text(call, "/segments/zone"));
        let mut names: Vec<String> = self.driver.take_capacity_calls().iter().map(name).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn failed_read_of_a_class_keeps_its_published_capacity() {
    let mut bench = Bench::start("failed-read").await;
    for status in [429, 500, 403, 503] {
        bench.server().unreadable.insert("fast".into(), status);
        bench.publisher.changes.created("fast", None);
        bench.publish().await;
        assert_eq!(bench.published(), ["fast-a", "fast-b", "slow-a", "slow-b"], "{status}");
        assert_eq!(bench.polled(), [""; 0], "{status}");
    }
    bench.server().unreadable.clear();
    bench.publish().await;
    assert_eq!(bench.polled(), ["fast-a", "fast-b"], "it is retried");
    bench.server().unreadable.insert("fast".into(), 404);
    bench.publisher.changes.created("fast", None);
    bench.publish().await;
    assert_eq!(bench.published(), ["slow-a", "slow-b"], "a class that does not exist has no capacity");
}

#[tokio::test]
async fn a_volume_polls_only_the_segment_that_it_is_accessible_from() {
    let mut bench = Bench::start("segments").await;
    bench.publish().await;
    assert_eq!(bench.polled(), [""; 0], "nothing has changed");
    let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]);
    let volume = json!({
        "spec": {"storageClassName": "fast", "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    });
    bench.publisher.changes.created("fast", Some(&volume));
    bench.publish().await;
    assert_eq!(bench.polled(), ["fast-a", "slow-a"]);
    bench.publisher.changes.deleted(&volume);
    bench.publish().await;
    assert_eq!(bench.polled(), ["fast-a", "slow-a"]);
    bench.publisher.changes.created("slow", None);
    bench.publish().await;
    assert_eq!(bench.polled(), ["slow-a", "slow-b"], "a failed call may have changed any segment of its class");
    assert_eq!(bench.published().len(), 4);
}
