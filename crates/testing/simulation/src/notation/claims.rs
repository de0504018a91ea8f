//! The lines of claims.

use bindery_model::{Claim, finalizer};
use serde_json::{Map, Value, json};

use super::{
    DEFAULT_MODES, annotate, delete, finalizer_words, long_modes, marks, namespaced, pair, short_modes, split,
};
use crate::simulated_cluster::NOW;

/// The conditions that rules write, and their words.
const CONDITIONS: [(&str, [&str; 4]); 4] = [
    ("unused", ["Unused", "True", "NoPodsUsingPVC", "No pods are currently referencing this PVC"]),
    ("used", ["Unused", "False", "PodUsingPVC", "A pod is currently referencing this PVC"]),
    ("resizing", ["Resizing", "True", "", ""]),
    (
        "fs-pending",
        [
            "FileSystemResizePending",
            "True",
            "",
            "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
        ],
    ),
];

/// A claim, from the words of its line.
pub fn parse(words: &[&str]) -> Value {
    let [id, request, phase, rest @ ..] = words else {
        panic!("a claim needs a name, a request and a phase: {words:?}")
    };
    let (name, uid) = id.split_once('#').expect("a claim is name#uid");
    let (namespace, name) = namespaced(name);
    let mut annotations = Map::new();
    let mut finalizers = Vec::new();
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
                let (key, value) = pair(label);
                spec["selector"]["matchLabels"][key] = value.into();
            }
            ("sel-op", Some(label)) => {
                let (key, operator) = pair(label);
                spec["selector"] = json!({"matchExpressions": [{"key": key, "operator": operator}]});
            }
            ("source", Some(kind)) => spec["dataSource"] = json!({"kind": kind, "name": "source"}),
            ("got", Some(text)) => got = Some(text),
            ("fin", Some(name)) => finalizers.push(name),
            ("protected", None) => finalizers.push(finalizer::PVC_PROTECTION),
            ("deleting", None) => delete(&mut object),
            ("owner", Some(uid)) => object["metadata"]["ownerReferences"] = owners(uid),
            ("label", Some(label)) => {
                let (key, value) = pair(label);
                object["metadata"]["labels"][key] = value.into();
            }
            (key, value) => {
                let is_known = report(&mut object["status"], word) || annotate(&mut annotations, key, value);
                assert!(is_known, "unknown word {word:?} for a claim");
            }
        }
    }
    let modes = object["spec"]["accessModes"].clone();
    match got {
        Some("nothing") => {}
        Some(got) => {
            let (capacity, modes) = got.split_once('/').expect("expected got=capacity/modes");
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
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = finalizers.into();
    }
    object
}

/// The pod that controls the claim; with `?` before its UID, an owner that is not the controller.
fn owners(uid: &str) -> Value {
    let (is_controller, uid) = uid.strip_prefix('?').map_or((true, uid), |uid| (false, uid));
    json!([{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": is_controller}])
}

/// Parses a word as a field of resizing or modifying, or as a condition; `false` if it is none.
fn report(status: &mut Value, word: &str) -> bool {
    match split(word) {
        ("target-vac", Some(class)) => {
            status["modifyVolumeStatus"] = json!({"targetVolumeAttributesClassName": class, "status": "Pending"});
        }
        ("alloc", Some(size)) => status["allocatedResources"]["storage"] = size.into(),
        ("resize", Some(text)) => status["allocatedResourceStatuses"]["storage"] = text.into(),
        // The status of another resource, which must not be changed.
        ("resize-cpu", Some(text)) => status["allocatedResourceStatuses"]["cpu"] = text.into(),
        (_, _) => {
            let (word, since) = word.split_once('@').unwrap_or((word, NOW));
            let Some(mut condition) = condition(word) else { return false };
            condition["lastTransitionTime"] = since.into();
            match status["conditions"].as_array_mut() {
                Some(conditions) => conditions.push(condition),
                None => status["conditions"] = json!([condition]),
            }
        }
    }
    true
}

fn condition(word: &str) -> Option<Value> {
    let texts = CONDITIONS.iter().find(|(name, _)| *name == word).map(|(_, texts)| texts.to_vec());
    let texts = texts.or_else(|| Some(word.strip_prefix("cond=")?.split(':').collect()))?;
    let fields = ["type", "status", "reason", "message"].into_iter().zip(texts);
    Some(fields.filter(|(_, text)| !text.is_empty()).map(|(field, text)| (field, Value::from(text))).collect())
}

fn condition_word(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let texts = ["type", "status", "reason", "message"].map(text);
    let since = match text("lastTransitionTime") {
        NOW => String::new(),
        time => format!("@{time}"),
    };
    let known = CONDITIONS.iter().find(|(_, known)| *known == texts).map(|(word, _)| (*word).to_owned());
    known.unwrap_or_else(|| format!("cond={}", texts[..3].join(":").trim_end_matches(':'))) + &since
}

/// The line of a claim.
pub fn line(claim: &Claim, value: &Value) -> String {
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
    words.extend(finalizer_words(&claim.finalizers, finalizer::PVC_PROTECTION));
    marks(&mut words, &claim.annotations);
    words.extend(claim.deleting.then(|| "deleting".to_owned()));
    words.extend(claim.controller.as_ref().map(|uid| format!("owner={uid}")));
    words.extend(labels(value));
    if let Some(change) = &status.change {
        words.extend(change.attributes_target.as_ref().map(|class| format!("target-vac={class}")));
        words.extend(change.allocated.as_ref().map(|size| format!("alloc={}", size.as_str())));
        words.extend((!change.resize_status.is_empty()).then(|| format!("resize={}", change.resize_status)));
    }
    let cpu = value["status"]["allocatedResourceStatuses"]["cpu"].as_str();
    words.extend(cpu.map(|text| format!("resize-cpu={text}")));
    let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<String> = conditions.map(condition_word).collect();
    conditions.sort();
    words.extend(conditions);
    words.join(" ")
}

fn labels(value: &Value) -> impl Iterator<Item = String> {
    let labels = value["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(key, value)| format!("label={key}:{}", value.as_str().unwrap_or_default()))
}
