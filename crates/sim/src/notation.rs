//! States of a world, written down in a line an object.
//!
//! ```text
//! pv   volume1 10Gi Bound ->claim1#uid1 bbc class=gold policy=Delete
//! pvc  claim1#uid1 5Gi Bound vol=volume1 got=10Gi/RWO,ROX bbc bc class=gold
//! sc   gold kubernetes.io/host-path wffc default
//! pod  pod1 claim=claim1 node=node1 phase=Running
//! node node1
//! ```
//!
//! What is not written has upstream's test defaults: volumes and claims are RWO and ROX, file systems, of no class; a volume is
//! retained; everything lives in namespace `default`. A claim that is Bound got what it asked for, unless `got` says otherwise.

use bindery_volumes::{AccessMode, AccessModes, Annotation, Claim, Kind, Object, Source, Volume};
use serde_json::{Map, Value, json};

use crate::World;
use crate::world::decode;

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
            "pv" => (Kind::Volume, volume(&words[1..])),
            "pvc" => (Kind::Claim, claim(&words[1..])),
            "sc" => (Kind::Class, class(&words[1..])),
            "pod" => (Kind::Pod, pod(&words[1..])),
            "node" => (Kind::Node, json!({"metadata": {"name": words[1], "uid": words[1]}})),
            other => panic!("{other:?} is no kind of object, in {line:?}"),
        };
        world.put(kind, object);
    }
}

/// The claims and volumes of a world, in a line each, sorted.
pub fn render(world: &World) -> String {
    let mut lines: Vec<String> = world
        .objects()
        .filter_map(|(key, value)| match decode(key.kind, value) {
            Object::Volume(volume) => Some(volume_line(&volume, value)),
            Object::Claim(claim) => Some(claim_line(&claim)),
            Object::Class(_) | Object::AttributesClass(_) | Object::Pod(_) | Object::Node(_) => None,
        })
        .collect();
    lines.sort();
    lines.join("\n")
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
const MARKS: [(&str, Annotation); 8] = [
    ("bbc", Annotation::BoundByController),
    ("bc", Annotation::BindCompleted),
    ("node", Annotation::SelectedNode),
    ("by", Annotation::ProvisionedBy),
    ("migrated", Annotation::MigratedTo),
    ("beta-class", Annotation::BetaStorageClass),
    ("pre-resize", Annotation::PreResizeCapacity),
    ("sp-beta", Annotation::BetaStorageProvisioner),
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

fn claim_ref(text: &str) -> Value {
    let (name, uid) = text.split_once('#').unwrap_or((text, ""));
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut claim_ref = json!({"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name});
    if !uid.is_empty() {
        claim_ref["uid"] = uid.into();
    }
    claim_ref
}

fn source(text: &str) -> (String, Value) {
    let (plugin, rest) = text.split_once(':').unwrap_or((text, ""));
    let value = match plugin {
        "hostPath" => json!({"path": rest}),
        "nfs" => json!({"server": "192.0.2.1", "path": rest}),
        "csi" => json!({"driver": rest, "volumeHandle": "handle"}),
        _ => json!({"of": rest}),
    };
    (plugin.into(), value)
}

fn volume(words: &[&str]) -> Value {
    let [name, capacity, phase, rest @ ..] = words else {
        panic!("a volume has a name, a capacity and a phase: {words:?}")
    };
    let mut annotations = Map::new();
    let mut labels = Map::new();
    let mut finalizers = Vec::new();
    let mut object = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {
            "accessModes": long_modes(DEFAULT_MODES),
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain",
        },
        "status": {"phase": if *phase == "-" { "" } else { phase }},
    });
    if *capacity != "-" {
        object["spec"]["capacity"] = json!({"storage": capacity});
    }
    for word in rest {
        let spec = &mut object["spec"];
        match split(word) {
            (text, None) if text.starts_with("->") => spec["claimRef"] = claim_ref(&text[2..]),
            (text, Some(value)) if text.starts_with("->") => panic!("{text}={value}: no such reference"),
            ("class", Some(class)) => spec["storageClassName"] = class.into(),
            ("policy", Some(policy)) => spec["persistentVolumeReclaimPolicy"] = policy.into(),
            ("mode", Some(mode)) => spec["volumeMode"] = mode.into(),
            ("modes", Some(modes)) => spec["accessModes"] = long_modes(modes).into(),
            ("vac", Some(class)) => spec["volumeAttributesClassName"] = class.into(),
            ("source", Some(text)) => {
                let (plugin, value) = source(text);
                spec[plugin] = value;
            }
            ("fin", Some(name)) => finalizers.push(name),
            ("label", Some(label)) => {
                let (key, value) = label.split_once(':').expect("a label is key:value");
                labels.insert(key.into(), value.into());
            }
            // Spaces in a message are written as underscores.
            ("msg", Some(message)) => object["status"]["message"] = message.replace('_', " ").into(),
            ("deleting", None) => object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
            (key, value) => assert!(annotate(&mut annotations, key, value), "{word:?} says nothing about a volume"),
        }
    }
    object["metadata"]["annotations"] = annotations.into();
    object["metadata"]["labels"] = labels.into();
    object["metadata"]["finalizers"] = finalizers.into();
    object
}

fn claim(words: &[&str]) -> Value {
    let [id, request, phase, rest @ ..] = words else { panic!("a claim has a name, a request and a phase: {words:?}") };
    let (name, uid) = id.split_once('#').expect("a claim is name#uid");
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut annotations = Map::new();
    let mut object = json!({
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {"accessModes": long_modes(DEFAULT_MODES), "volumeMode": "Filesystem"},
        "status": {"phase": phase},
    });
    if *request != "-" {
        object["spec"]["resources"] = json!({"requests": {"storage": request}});
    }
    let mut got = None;
    for word in rest {
        let spec = &mut object["spec"];
        match split(word) {
            ("class", Some(class)) => spec["storageClassName"] = class.into(),
            ("vol", Some(volume)) => spec["volumeName"] = volume.into(),
            ("mode", Some(mode)) => spec["volumeMode"] = mode.into(),
            ("modes", Some(modes)) => spec["accessModes"] = long_modes(modes).into(),
            ("vac", Some(class)) => spec["volumeAttributesClassName"] = class.into(),
            ("has-vac", Some(class)) => object["status"]["currentVolumeAttributesClassName"] = class.into(),
            ("sel", Some(label)) => {
                let (key, value) = label.split_once(':').expect("a selected label is key:value");
                spec["selector"]["matchLabels"][key] = value.into();
            }
            ("sel-op", Some(label)) => {
                let (key, operator) = label.split_once(':').expect("a selecting expression is key:operator");
                spec["selector"] = json!({"matchExpressions": [{"key": key, "operator": operator}]});
            }
            ("source", Some(kind)) => spec["dataSource"] = json!({"kind": kind, "name": "source"}),
            ("got", Some(text)) => got = Some(text),
            (key, value) => assert!(annotate(&mut annotations, key, value), "{word:?} says nothing about a claim"),
        }
    }
    let modes = object["spec"]["accessModes"].clone();
    match got {
        Some("nothing") => {}
        Some(got) => {
            let (capacity, modes) = got.split_once('/').expect("what a claim got is capacity/modes");
            object["status"]["capacity"] = json!({"storage": capacity});
            object["status"]["accessModes"] = long_modes(modes).into();
        }
        None if *phase == "Bound" => {
            object["status"]["capacity"] = json!({"storage": request});
            object["status"]["accessModes"] = modes;
        }
        None => {}
    }
    object["metadata"]["annotations"] = annotations.into();
    object
}

fn class(words: &[&str]) -> Value {
    let [name, provisioner, rest @ ..] = words else { panic!("a class has a name and a provisioner: {words:?}") };
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    });
    for word in rest {
        match split(word) {
            ("wffc", None) => object["volumeBindingMode"] = "WaitForFirstConsumer".into(),
            ("no-mode", None) => object["volumeBindingMode"] = Value::Null,
            ("binding", Some(mode)) => object["volumeBindingMode"] = mode.into(),
            ("default", None) => {
                object["metadata"]["annotations"] = json!({Annotation::IsDefaultClass.key(): "true"});
            }
            ("created", Some(time)) => object["metadata"]["creationTimestamp"] = time.into(),
            ("policy", Some(policy)) => object["reclaimPolicy"] = policy.into(),
            ("mount", Some(option)) => object["mountOptions"] = json!([option]),
            (_, _) => panic!("{word:?} says nothing about a class"),
        }
    }
    object
}

fn pod(words: &[&str]) -> Value {
    let [name, rest @ ..] = words else { panic!("a pod has a name") };
    let mut object = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"volumes": []},
        "status": {"phase": "Pending"},
    });
    for word in rest {
        match split(word) {
            ("claim", Some(claim)) => {
                let volumes = object["spec"]["volumes"].as_array_mut().expect("volumes are a list");
                volumes.push(json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
            }
            ("node", Some(node)) => object["spec"]["nodeName"] = node.into(),
            ("phase", Some(phase)) => object["status"]["phase"] = phase.into(),
            (_, _) => panic!("{word:?} says nothing about a pod"),
        }
    }
    object
}

fn marks(words: &mut Vec<String>, annotations: &bindery_volumes::Annotations) {
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

fn volume_line(volume: &Volume, value: &Value) -> String {
    let capacity = volume.capacity.as_ref().map_or("-", |capacity| capacity.as_str());
    let phase = match value["status"]["phase"].as_str().unwrap_or_default() {
        "" => "-",
        phase => phase,
    };
    let mut words = vec!["pv".to_owned(), volume.name().to_string(), capacity.into(), phase.into()];
    if let Some(claim) = &volume.claim_ref {
        let uid = if claim.uid.is_empty() { String::new() } else { format!("#{}", claim.uid) };
        words.push(format!("->{}{uid}", claim.key.to_string().trim_start_matches("default/")));
    }
    let modes = short_modes(volume.modes);
    let mut optional = |is_shown: bool, word: String| words.extend(is_shown.then_some(word));
    optional(!volume.class_field.is_empty(), format!("class={}", volume.class_field));
    optional(volume.policy.as_str() != "Retain", format!("policy={}", volume.policy.as_str()));
    optional(volume.volume_mode.as_str() != "Filesystem", format!("mode={}", volume.volume_mode.as_str()));
    optional(modes != DEFAULT_MODES, format!("modes={modes}"));
    optional(volume.attributes_class.is_some(), format!("vac={}", volume.attributes()));
    let source = match &volume.source {
        Source::HostPath(path) => Some(format!("hostPath:{path}")),
        Source::Nfs(export) => Some(format!("nfs:{}", export.1)),
        Source::Csi(driver) => Some(format!("csi:{driver}")),
        Source::Migrated(_) | Source::Flex(_) | Source::Other => None,
    };
    words.extend(source.map(|source| format!("source={source}")));
    words.extend(volume.finalizers.iter().map(|name| format!("fin={name}")));
    marks(&mut words, &volume.annotations);
    words.extend(volume.deleting.then(|| "deleting".to_owned()));
    words.extend((!volume.message.is_empty()).then(|| format!("msg={}", volume.message.replace(' ', "_"))));
    words.join(" ")
}

fn claim_line(claim: &Claim) -> String {
    let request = claim.request.as_ref().map_or("-", |request| request.as_str());
    let key = claim.key().to_string();
    let id = format!("{}#{}", key.trim_start_matches("default/"), claim.meta.uid);
    let mut words = vec!["pvc".to_owned(), id, request.into(), claim.status.phase.as_str().into()];
    let modes = short_modes(claim.modes);
    let status = &claim.status;
    let got = match (&status.capacity, status.modes) {
        (None, None) => "nothing".to_owned(),
        (capacity, modes) => {
            let capacity = capacity.as_ref().map_or("-", |capacity| capacity.as_str());
            format!("{capacity}/{}", short_modes(modes.unwrap_or_default()))
        }
    };
    let is_bound = status.phase.as_str() == "Bound";
    let usual = if is_bound { format!("{request}/{modes}") } else { "nothing".into() };
    words.extend(claim.volume.as_ref().map(|volume| format!("vol={volume}")));
    words.extend((got != usual).then(|| format!("got={got}")));
    words.extend(claim.class_field.as_ref().map(|class| format!("class={class}")));
    words.extend((claim.volume_mode.as_str() != "Filesystem").then(|| format!("mode={}", claim.volume_mode.as_str())));
    words.extend((modes != DEFAULT_MODES).then(|| format!("modes={modes}")));
    words.extend(claim.attributes_class.as_ref().map(|class| format!("vac={class}")));
    words.extend(status.attributes_class.as_ref().map(|class| format!("has-vac={class}")));
    marks(&mut words, &claim.annotations);
    words.join(" ")
}
