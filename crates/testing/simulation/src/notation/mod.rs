//! A notation for the state of a cluster, with one line per object.
//!
//! ```text
//! pv   volume1 10Gi Bound ->claim1#uid1 bbc class=gold policy=Delete
//! pvc  claim1#uid1 5Gi Bound vol=volume1 got=10Gi/RWO,ROX bbc bc class=gold
//! sc   gold kubernetes.io/host-path wffc default
//! vac  fast protected
//! pod  pod1 claim=claim1 node=node1 phase=Running
//! pod  pod2#uid2 eph=scratch:1Gi:gold deleting=30 container=running
//! node node1
//! csinode node1 driver=example.com:zone,rack
//! ```
//!
//! Defaults are those of upstream's tests: volumes and claims have the access modes RWO and ROX,
//! the volume mode Filesystem, and no class; volumes have the policy Retain; the namespace is
//! `default`. A Bound claim has the capacity and modes that it requests, unless `got` is set.
//! `protected` is the protection finalizer of the kind, `fin` any other. The conditions that our
//! rules write are `unused`, `used`, `resizing` and `fs-pending`, followed by `@` and a time if
//! they were set at another time; any other condition is `cond=Type:Status:Reason`.

mod claims;
mod classes_and_pods;
mod scheduling;
mod volumes;

use bindery_model::{AccessMode, AccessModes, Annotation, Annotations, Kind, Name, Object};
use serde_json::{Map, Value};

use crate::SimulatedCluster;
use crate::simulated_cluster::{NOW, decode};

const DEFAULT_MODES: &str = "RWO,ROX";

/// Creates a cluster from lines.
pub fn parse(lines: &str) -> SimulatedCluster {
    let mut cluster = SimulatedCluster::default();
    add(&mut cluster, lines);
    cluster
}

/// Adds the objects of lines to a cluster.
pub fn add(cluster: &mut SimulatedCluster, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, object) = match words[0] {
            "pv" => (Kind::Volume, volumes::parse(&words[1..])),
            "pvc" => (Kind::Claim, claims::parse(&words[1..])),
            "sc" => (Kind::Class, classes_and_pods::class(&words[1..])),
            "vac" => (Kind::AttributesClass, classes_and_pods::attributes_class(&words[1..])),
            "pod" => (Kind::Pod, classes_and_pods::pod(&words[1..])),
            "node" => (Kind::Node, scheduling::node(&words[1..])),
            "csinode" => (Kind::CsiNode, scheduling::csi_node(&words[1..])),
            other => panic!("unknown kind {other:?} in {line:?}"),
        };
        cluster.put(kind, object);
    }
}

/// The claims, volumes and attributes classes of a cluster, one line each, sorted.
pub fn render(cluster: &SimulatedCluster) -> String {
    let mut lines: Vec<String> = cluster
        .objects()
        .filter_map(|(key, value)| match decode(key.kind, value) {
            Object::Volume(volume) => Some(volumes::line(&volume, value)),
            Object::Claim(claim) => Some(claims::line(&claim, value)),
            Object::AttributesClass(class) => Some(classes_and_pods::attributes_class_line(&class)),
            Object::Class(_)
            | Object::Pod(_)
            | Object::Node(_)
            | Object::CsiNode(_)
            | Object::CsiDriver(_)
            | Object::Capacity(_)
            | Object::Attachment(_)
            | Object::Record(_) => None,
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// The nodes of the pods of a cluster, one line each, sorted: `name@node`, `name>node` if the node
/// is nominated, or `name: reason` if the pod is unschedulable.
pub fn pod_nodes(cluster: &SimulatedCluster) -> Vec<String> {
    let pods = cluster.objects().filter(|(key, _)| key.kind == Kind::Pod);
    let mut lines: Vec<String> = pods
        .filter_map(|(key, value)| if let Object::Pod(pod) = decode(key.kind, value) { Some(pod) } else { None })
        .map(|pod| scheduling::pod_node(&pod))
        .collect();
    lines.sort();
    lines
}

/// Normalizes lines for a comparison with [`render`]: without indentation and defaults, with sorted
/// lines and words.
pub fn normalize(lines: &str) -> String {
    render(&parse(lines))
}

fn long_modes(short: &str) -> Vec<&'static str> {
    let long = |mode: &str| match mode {
        "RWO" => "ReadWriteOnce",
        "ROX" => "ReadOnlyMany",
        "RWX" => "ReadWriteMany",
        "RWOP" => "ReadWriteOncePod",
        // An invalid mode, for malformed objects.
        "bad" => "ReadWriteSometimes",
        other => panic!("unknown access mode {other:?}"),
    };
    short.split(',').filter(|mode| !mode.is_empty()).map(long).collect()
}

fn short_modes(modes: AccessModes) -> String {
    let short = |mode| match mode {
        AccessMode::ReadWriteOnce => "RWO",
        AccessMode::ReadOnlyMany => "ROX",
        AccessMode::ReadWriteMany => "RWX",
        AccessMode::ReadWriteOncePod => "RWOP",
    };
    modes.iter().map(short).collect::<Vec<_>>().join(",")
}

/// Annotations and their words.
const MARKS: [(&str, Annotation); 11] = [
    ("bbc", Annotation::BoundByController),
    ("bc", Annotation::BindCompleted),
    ("node", Annotation::SelectedNode),
    ("alpha-node", Annotation::AlphaSelectedNode),
    ("by", Annotation::ProvisionedBy),
    ("scrub", Annotation::Scrubbing),
    ("migrated", Annotation::MigratedTo),
    ("beta-class", Annotation::BetaStorageClass),
    ("pre-resize", Annotation::PreResizeCapacity),
    ("sp-beta", Annotation::BetaStorageProvisioner),
    ("resizer", Annotation::StorageResizer),
];

/// A token of a line: `key=value`, or a bare key.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    }
}

/// Parses a word as an annotation; `false` if it is none.
fn annotate(annotations: &mut Map<String, Value>, key: &str, value: Option<&str>) -> bool {
    if key == "sp" || key == "sp-ga" {
        annotations.insert(Annotation::StorageProvisioner.key().into(), value.into());
        if key == "sp" {
            annotations.insert(Annotation::BetaStorageProvisioner.key().into(), value.into());
        }
        return true;
    }
    let Some((_, annotation)) = MARKS.iter().find(|(mark, _)| *mark == key) else { return false };
    annotations.insert(annotation.key().into(), value.unwrap_or("yes").into());
    true
}

fn marks(words: &mut Vec<String>, annotations: &Annotations) {
    let current = annotations.get(Annotation::StorageProvisioner);
    let beta = annotations.get(Annotation::BetaStorageProvisioner);
    match (current, beta) {
        (Some(current), beta) if beta == Some(current) => words.push(format!("sp={current}")),
        (current, beta) => {
            words.extend(current.map(|name| format!("sp-ga={name}")));
            words.extend(beta.map(|name| format!("sp-beta={name}")));
        }
    }
    for (mark, annotation) in MARKS.iter().filter(|(mark, _)| *mark != "sp-beta") {
        match annotations.get(*annotation).map(|value| value.as_str()) {
            Some("yes") => words.push((*mark).into()),
            Some(value) => words.push(format!("{mark}={value}")),
            None => {}
        }
    }
}

/// Splits `namespace/name`; the default namespace can be omitted.
fn namespaced(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("default", text))
}

/// Splits `key:value`.
fn pair(text: &str) -> (&str, &str) {
    text.split_once(':').expect("expected key:value")
}

/// Marks an object as deleted.
fn delete(object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = NOW.into();
}

/// The words of finalizers: `protected` for the protection finalizer of the kind, else `fin=NAME`.
fn finalizer_words(finalizers: &[Name], protection: &str) -> impl Iterator<Item = String> {
    let word = move |name: &Name| if name == protection { "protected".to_owned() } else { format!("fin={name}") };
    finalizers.iter().map(word)
}
