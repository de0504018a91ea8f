//! How fast a pod is placed: what 5,000 nodes have for its claims, and how well each suits it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_cache::{Cache, TopologyIndex};
use bindery_model::{Capacity, Claim, Class, CsiDriver, CsiNode, Node, Object, Pod, Volume};
use bindery_placement::{UtilizationShape, VolumePlacement};
use serde_json::{Value, json};

const ROUNDS: usize = 31;
const CLAIMS: usize = 3;

/// What the pod's claims are to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Volumes on the disks of nodes.
    Local,
    /// Volumes that all nodes of a zone can reach.
    Zonal,
    /// Volumes of a zone, none of which has the labels that are asked for.
    ZonalUnfit,
    /// Volumes that are made where there is room: a driver says of every node how much it has.
    Made,
}

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// How long it took to look at the pod, to ask all nodes and to score them: the best of some rounds.
    pub best: Duration,
    /// The median of them.
    pub median: Duration,
    /// How many nodes will do.
    pub nodes: usize,
    /// The sum of their scores: the same in every run.
    pub scores: i64,
}

fn bytes(json: &Value) -> Vec<u8> {
    json.to_string().into_bytes()
}

fn host(n: usize) -> String {
    format!("node-{n:05}.example.internal")
}

fn zone(n: usize) -> String {
    format!("eu-central-1{}", ["a", "b", "c"][n % 3])
}

fn node(n: usize) -> Node {
    let json = json!({
        "metadata": {
            "name": host(n), "uid": format!("00000001-5d7a-4c21-9f3e-{n:012x}"),
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": host(n),
                "node.kubernetes.io/instance-type": "m5d.4xlarge", "team": format!("team-{}", n % 50),
                "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": zone(n),
            },
        },
        "status": {"allocatable": {"cpu": "15890m", "memory": "60Gi", "pods": "110"}},
    });
    Node::from_json(&bytes(&json)).expect("a node has a name")
}

fn volume(n: usize, nodes: usize, storage: Storage) -> Volume {
    let (key, value) = match storage {
        Storage::Local | Storage::Made => ("kubernetes.io/hostname", host(n % nodes)),
        Storage::Zonal | Storage::ZonalUnfit => ("topology.kubernetes.io/zone", zone(n)),
    };
    let json = json!({
        "metadata": {
            "name": format!("local-pv-{:08x}", n.wrapping_mul(2_654_435_761) % 0xffff_ffff),
            "uid": format!("00000002-5d7a-4c21-9f3e-{n:012x}"), "resourceVersion": (9_000_000 + n).to_string(),
            "annotations": {"pv.kubernetes.io/provisioned-by": "local-volume-provisioner"},
            "finalizers": ["kubernetes.io/pv-protection"],
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": format!("{}Gi", 100 + n % 7 * 50)},
            "local": {"path": format!("/mnt/disks/{n}")}, "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "fast", "volumeMode": "Filesystem",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
            ]}},
        },
        "status": {"phase": "Available"},
    });
    Volume::from_json(&bytes(&json)).expect("a volume has a name")
}

/// A volume on the disk of one of so many nodes.
pub fn local_volume(n: usize, nodes: usize) -> Volume {
    volume(n, nodes, Storage::Local)
}

fn claim(n: usize, storage: Storage) -> Claim {
    let selector = (storage == Storage::ZonalUnfit).then(|| json!({"matchLabels": {"disk": "nvme"}}));
    let json = json!({
        "metadata": {"name": format!("data-{n}"), "namespace": "bench", "uid": format!("claim-{n}")},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": format!("{}Gi", 50 + 50 * n)}},
            "storageClassName": "fast", "selector": selector,
        },
    });
    Claim::from_json(&bytes(&json)).expect("a claim has a name")
}

fn room(n: usize) -> Capacity {
    let json = json!({
        "metadata": {"name": format!("csisc-{n:05}"), "namespace": "storage", "uid": format!("room-{n}")},
        "storageClassName": "fast", "capacity": format!("{}Gi", 200 + n % 7 * 100),
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": host(n)}},
    });
    Capacity::from_json(&bytes(&json)).expect("room has a name")
}

/// A cluster of so many nodes and volumes.
fn cluster(nodes: usize, volumes: usize, storage: Storage) -> Cache {
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    let provisioner = if storage == Storage::Made { "d.example.com" } else { "kubernetes.io/no-provisioner" };
    let json = json!({
        "metadata": {"name": "fast", "uid": "c"}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    known.watched(Object::Class(Arc::new(Class::from_json(&bytes(&json)).expect("a class has a name"))));
    let json = json!({"metadata": {"name": "d.example.com", "uid": "d"}, "spec": {"storageCapacity": true}});
    known.watched(Object::CsiDriver(Arc::new(CsiDriver::from_json(&bytes(&json)).expect("a driver has a name"))));
    for n in 0..CLAIMS {
        known.watched(Object::Claim(Arc::new(claim(n, storage))));
    }
    for n in 0..nodes {
        known.watched(Object::Node(Arc::new(node(n))));
        let json = json!({"metadata": {"name": host(n), "uid": "n"}, "spec": {"drivers": [
            {"name": "d.example.com", "allocatable": {"count": 25}}, {"name": "e.example.com"},
        ]}});
        known.watched(Object::CsiNode(Arc::new(CsiNode::from_json(&bytes(&json)).expect("it has a name"))));
        if storage == Storage::Made {
            known.watched(Object::Capacity(Arc::new(room(n))));
        }
    }
    for n in 0..if storage == Storage::Made { 0 } else { volumes } {
        known.watched(Object::Volume(Arc::new(volume(n, nodes, storage))));
    }
    known
}

/// Places a pod with three claims, again and again.
pub fn place(nodes: usize, volumes: usize, storage: Storage) -> Placed {
    let cluster = cluster(nodes, volumes, storage);
    let volume =
        |n: usize| json!({"name": format!("data-{n}"), "persistentVolumeClaim": {"claimName": format!("data-{n}")}});
    let volumes: Vec<Value> = (0..CLAIMS).map(volume).collect();
    let json = json!({"metadata": {"name": "db-0", "namespace": "bench", "uid": "pod"}, "spec": {"volumes": volumes}});
    let pod = Pod::from_json(&bytes(&json)).expect("a pod has a name");
    let shape = UtilizationShape::default();
    let round = || {
        let start = Instant::now();
        let placing = VolumePlacement::prepare(&cluster, &pod).expect("it can be placed");
        let (mut fitting, mut scores) = (0, 0);
        for node in cluster.nodes() {
            let found = black_box(placing.find(node)).expect("nothing is wrong with it");
            if found.rejections.is_empty() {
                fitting += 1;
                scores += shape.score(&found);
            }
        }
        (start.elapsed(), fitting, scores)
    };
    let mut rounds: Vec<(Duration, usize, i64)> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_unstable();
    let (best, nodes, scores) = rounds[0];
    Placed { best, median: rounds[ROUNDS / 2].0, nodes, scores }
}

/// How long it takes to put all volumes into the index, as happens once, when they are first seen.
pub fn index(nodes: usize, volumes: usize) -> Duration {
    let all: Vec<Arc<Volume>> = (0..volumes).map(|n| Arc::new(volume(n, nodes, Storage::Local))).collect();
    let start = Instant::now();
    let mut reach = TopologyIndex::default();
    all.iter().for_each(|volume| reach.insert(volume));
    black_box(&reach);
    start.elapsed()
}
