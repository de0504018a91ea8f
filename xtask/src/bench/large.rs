//! The engine in a large cluster: the longest call while everything is listed, decided about,
//! resynced, counted for metrics and explained.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_engine::{Engine, Input};
use bindery_explain::{LINES, explain_pod};
use bindery_model::{Claim, Class, Kind, Node, Object, Pod, PodKey, Volume};
use serde_json::{Value, json};

use super::meter::{Calls, Meter};
use super::objects::{claim_json, size_gib, volume_json};

/// Claims and volumes of the cluster, each.
pub const PAIRS: usize = 100_000;
const CHANGED: usize = 1_000;
const NODES: usize = 1_000;
const SELECTING: usize = 100;
const VERSION: u64 = 9_000_000;

/// A phase and its calls.
pub type Phase = (&'static str, Calls);

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

/// A claim that is bound to volume `n`. All claims have the same VolumeAttributesClass.
fn bound_claim(n: usize, version: u64) -> Object {
    let mut json = claim_json(n, size_gib(n), true);
    json["spec"]["volumeAttributesClassName"] = "gold".into();
    json["status"]["currentVolumeAttributesClassName"] = "gold".into();
    json["metadata"]["resourceVersion"] = version.to_string().into();
    json["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] = version.to_string().into();
    Object::Claim(Arc::new(Claim::from_json(&bytes(&json)).expect("a claim has a name")))
}

fn bound_volume(n: usize) -> Object {
    let json = volume_json(n, size_gib(n), true);
    Object::Volume(Arc::new(Volume::from_json(&bytes(&json)).expect("a volume has a name")))
}

fn node(n: usize) -> Object {
    let json = json!({
        "metadata": {"name": format!("node-{n}"), "uid": format!("n{n}"), "resourceVersion": "1",
                     "labels": {"kubernetes.io/hostname": format!("node-{n}")}},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    });
    Object::Node(Arc::new(Node::from_json(&bytes(&json)).expect("a node has a name")))
}

/// The class, claim and pod of a pod that no node can serve: its class provisions nothing.
fn stuck_pod() -> [Object; 3] {
    let class = json!({
        "metadata": {"name": "local", "uid": "s", "resourceVersion": "1"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    let claim = json!({
        "metadata": {"namespace": "team-0", "name": "stuck", "uid": "c", "resourceVersion": "9999999",
                     "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                 "storageClassName": "local"},
        "status": {"phase": "Pending"},
    });
    let pod = json!({
        "metadata": {"namespace": "team-0", "name": "stuck", "uid": "p", "resourceVersion": "1"},
        "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "stuck"}}]},
    });
    [
        Object::Class(Arc::new(Class::from_json(&bytes(&class)).expect("a class has a name"))),
        Object::Claim(Arc::new(Claim::from_json(&bytes(&claim)).expect("a claim has a name"))),
        Object::Pod(Arc::new(Pod::from_json(&bytes(&pod)).expect("a pod has a name"))),
    ]
}

fn list(meter: &mut Meter, mut objects: BTreeMap<Kind, Vec<Object>>) {
    for kind in Kind::ALL {
        let objects = objects.remove(&kind).unwrap_or_default();
        meter.handle(Input::Listed { kind, version: VERSION, objects });
    }
}

/// Bound claims and volumes: nothing has to be done about any of them. `explained` is set to the
/// time of the whole explanation if that is shorter.
pub fn bound(explained: &mut Duration) -> [Phase; 6] {
    let [class, claim, pod] = stuck_pod();
    let claims = (0..PAIRS).map(|n| bound_claim(n, 1_000_000 + n as u64)).chain([claim]).collect();
    let objects = BTreeMap::from([
        (Kind::Claim, claims),
        (Kind::Volume, (0..PAIRS).map(bound_volume).collect()),
        (Kind::Node, (0..NODES).map(node).collect()),
        (Kind::Class, vec![class]),
        (Kind::Pod, vec![pod]),
    ]);
    let mut meter = Meter::new();
    list(&mut meter, objects);
    let listing = meter.calls();
    meter.handle(Input::Leader(true));
    let starting = meter.calls();
    for n in 0..CHANGED {
        meter.handle(Input::Watched(bound_claim(n * (PAIRS / CHANGED), VERSION + 1 + n as u64)));
    }
    let changing = meter.calls();
    let resyncs = meter.engine.stats().resyncs;
    while meter.engine.stats().resyncs == resyncs {
        meter.tick();
    }
    let resyncing = meter.calls();
    meter.query(|engine| black_box(metrics(engine)));
    let counting = meter.calls();
    let start = Instant::now();
    explain(&mut meter);
    *explained = (*explained).min(start.elapsed());
    assert_eq!(meter.sent, 0, "nothing has to be done");
    [
        ("initial lists", listing),
        ("becoming the leader", starting),
        ("1,000 changed claims", changing),
        ("resync", resyncing),
        ("metrics", counting),
        ("explaining a pod", meter.calls()),
    ]
}

/// What the engine task does for a page of metrics: it reads counters.
fn metrics(engine: &Engine) -> usize {
    let known = engine.known();
    let objects = known.volume_counts().iter().map(|(_, count)| count).sum::<usize>()
        + known.claim_counts().iter().map(|(_, count)| count).sum::<usize>();
    objects + engine.queues().map(|(_, _, waiting)| waiting).sum::<usize>()
}

fn explain(meter: &mut Meter) {
    let key = PodKey { namespace: "team-0".into(), name: "stuck".into() };
    let snapshot = meter.query(|engine| engine.known().snapshot());
    let explanation = explain_pod(&snapshot.build(), &key, LINES).expect("the pod exists");
    assert!(explanation.change.is_some(), "a change is proposed");
}

/// Claims with a selector that no volume of a large pool matches.
pub fn selecting() -> [Phase; 1] {
    let volume = |n: usize| {
        let mut json = volume_json(n, size_gib(n), false);
        let disk = if n.is_multiple_of(2) { "ssd" } else { "hdd" };
        json["metadata"]["labels"] = json!({"disk": disk, "rack": format!("r{}", n % 500)});
        Object::Volume(Arc::new(Volume::from_json(&bytes(&json)).expect("a volume has a name")))
    };
    let claim = |n: usize| {
        let mut json = claim_json(n, 1, false);
        json["spec"]["selector"] = json!({"matchLabels": {"disk": "ssd", "rack": format!("r{}", 2 * n + 1)}});
        Object::Claim(Arc::new(Claim::from_json(&bytes(&json)).expect("a claim has a name")))
    };
    let objects = BTreeMap::from([
        (Kind::Volume, (0..PAIRS).map(volume).collect()),
        (Kind::Claim, (0..SELECTING).map(claim).collect::<Vec<_>>()),
    ]);
    let mut meter = Meter::new();
    list(&mut meter, objects);
    meter.calls();
    meter.handle(Input::Leader(true));
    [("100 claims with selectors", meter.calls())]
}
