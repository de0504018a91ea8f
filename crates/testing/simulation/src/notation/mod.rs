//! States of a world, written down in a line an object.
//!
//! ```text
//! pv   volume1 10Gi Bound ->claim1#uid1 bbc class=gold policy=Delete
//! pvc  claim1#uid1 5Gi Bound vol=volume1 got=10Gi/RWO,ROX bbc bc class=gold
//! sc   gold kubernetes.io/host-path wffc default
//! vac  fast guarded
//! pod  pod1 claim=claim1 node=node1 phase=Running
//! pod  pod2#uid2 eph=scratch:1Gi:gold deleting=30 container=running
//! node node1
//! csinode node1 driver=example.com:zone,rack
//! ```
//!
//! What is not written has upstream's test defaults: volumes and claims are RWO and ROX, file systems, of no class; a volume is
//! retained; everything lives in namespace `default`. A claim that is Bound got what it asked for, unless `got` says otherwise.
//! `guarded` stands for the protection finalizer of the kind, `fin` for any other. The conditions that our rules write have words of their own (`unused`, `used`, `resizing`, `fs-pending`), with `@` and a time
//! where they hold since another moment than that of the world; any other is `cond=Type:Status:Reason`.

mod claims;
mod others;
mod scheduling;
mod volumes;

use bindery_model::{AccessMode, AccessModes, Annotation, Annotations, Kind, Name, Object};
use serde_json::{Map, Value};

use crate::World;
use crate::world::{NOW, decode};

const DEFAULT_MODES: &str = "RWO,ROX";

/// The world that lines describe.
pub fn parse(lines: &str) -> World {
    let mut world = World::default();
    add(&mut world, lines);
    world
}

/// Puts what lines describe into a world.
pub fn add(world: &mut World, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, object) = match words[0] {
            "pv" => (Kind::Volume, volumes::parse(&words[1..])),
            "pvc" => (Kind::Claim, claims::parse(&words[1..])),
            "sc" => (Kind::Class, others::class(&words[1..])),
            "vac" => (Kind::AttributesClass, others::attributes_class(&words[1..])),
            "pod" => (Kind::Pod, others::pod(&words[1..])),
            "node" => (Kind::Node, scheduling::node(&words[1..])),
            "csinode" => (Kind::CsiNode, scheduling::csi_node(&words[1..])),
            other => panic!("{other:?} is no kind of object, in {line:?}"),
        };
        world.put(kind, object);
    }
}

/// The claims, volumes and attributes classes of a world, in a line each, sorted.
pub fn render(world: &World) -> String {
    let mut lines: Vec<String> = world
        .objects()
        .filter_map(|(key, value)| match decode(key.kind, value) {
            Object::Volume(volume) => Some(volumes::line(&volume, value)),
            Object::Claim(claim) => Some(claims::line(&claim, value)),
            Object::AttributesClass(class) => Some(others::attributes_class_line(&class)),
            Object::Class(_)
            | Object::Pod(_)
            | Object::Node(_)
            | Object::CsiNode(_)
            | Object::CsiDriver(_)
            | Object::Capacity(_)
            | Object::Attachment(_) => None,
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Where the pods of a world are, in a line each, sorted: `name@node`, `name>node` while the node is only meant for it, or
/// `name: why it has none`.
pub fn places(world: &World) -> Vec<String> {
    let pods = world.objects().filter(|(key, _)| key.kind == Kind::Pod);
    let mut lines: Vec<String> = pods
        .filter_map(|(key, value)| if let Object::Pod(pod) = decode(key.kind, value) { Some(pod) } else { None })
        .map(|pod| scheduling::place(&pod))
        .collect();
    lines.sort();
    lines
}

/// Lines without indentation and in order, to compare with [`render`]: expectations may leave out what is default, and may write
/// the words after the phase in any order.
pub fn normalize(lines: &str) -> String {
    render(&parse(lines))
}

fn long_modes(short: &str) -> Vec<&'static str> {
    let long = |mode: &str| match mode {
        "RWO" => "ReadWriteOnce",
        "ROX" => "ReadOnlyMany",
        "RWX" => "ReadWriteMany",
        "RWOP" => "ReadWriteOncePod",
        // None that exists, for objects that are malformed.
        "bad" => "ReadWriteSometimes",
        other => panic!("{other:?} is no access mode"),
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

/// The annotations that have a word of their own.
const MARKS: [(&str, Annotation); 10] = [
    ("bbc", Annotation::BoundByController),
    ("bc", Annotation::BindCompleted),
    ("node", Annotation::SelectedNode),
    ("alpha-node", Annotation::AlphaSelectedNode),
    ("by", Annotation::ProvisionedBy),
    ("migrated", Annotation::MigratedTo),
    ("beta-class", Annotation::BetaStorageClass),
    ("pre-resize", Annotation::PreResizeCapacity),
    ("sp-beta", Annotation::BetaStorageProvisioner),
    ("resizer", Annotation::StorageResizer),
];

/// A word of a line: `key=value`, or a bare key.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (word, None),
    }
}

/// Takes a word as an annotation, if it is one.
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

/// Where an object lives, and its name: the default namespace is not written.
fn place(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("default", text))
}

/// A label, or whatever else is `key:value`.
fn pair(text: &str) -> (&str, &str) {
    text.split_once(':').expect("it is key:value")
}

/// Marks an object as deleted.
fn delete(object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = NOW.into();
}

/// Every finalizer is a word; the protection finalizer of the kind has one of its own.
fn finalizer_words(finalizers: &[Name], guard: &str) -> impl Iterator<Item = String> {
    let word = move |name: &Name| if name == guard { "guarded".to_owned() } else { format!("fin={name}") };
    finalizers.iter().map(word)
}
