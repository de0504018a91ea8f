//! What volumes and claims have to do with, as lines: classes, attributes classes, pods.

use bindery_model::{Annotation, AttributesClass, finalizer};
use serde_json::{Value, json};

use super::{DEFAULT_MODES, delete, finalizer_words, long_modes, pair, place, scheduling, split};
use crate::world::NOW;

/// A class, from the words of its line.
pub fn class(words: &[&str]) -> Value {
    let [name, provisioner, rest @ ..] = words else { panic!("a class has a name and a provisioner: {words:?}") };
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": NOW},
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
            // Labels with their values, one term a word: zone:a|b,rack:1
            ("allow", Some(term)) => {
                let label = |text: &str| {
                    let (key, values) = pair(text);
                    json!({"key": key, "values": values.split('|').collect::<Vec<_>>()})
                };
                let labels: Vec<Value> = term.split(',').map(label).collect();
                scheduling::push(&mut object["allowedTopologies"], json!({"matchLabelExpressions": labels}));
            }
            ("mount", Some(option)) => object["mountOptions"] = json!([option]),
            (_, _) => panic!("{word:?} says nothing about a class"),
        }
    }
    object
}

/// An attributes class, from the words of its line.
pub fn attributes_class(words: &[&str]) -> Value {
    let [name, rest @ ..] = words else { panic!("an attributes class has a name") };
    let mut object = json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "driverName": "example.com/csi"});
    let mut finalizers = Vec::new();
    for word in rest {
        match split(word) {
            ("fin", Some(name)) => finalizers.push(name),
            ("guarded", None) => finalizers.push(finalizer::VAC_PROTECTION),
            ("deleting", None) => delete(&mut object),
            (_, _) => panic!("{word:?} says nothing about an attributes class"),
        }
    }
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = finalizers.into();
    }
    object
}

/// The line of an attributes class.
pub fn attributes_class_line(class: &AttributesClass) -> String {
    let mut words = vec!["vac".to_owned(), class.meta.name.to_string()];
    words.extend(finalizer_words(&class.finalizers, finalizer::VAC_PROTECTION));
    words.extend(class.deleting.then(|| "deleting".to_owned()));
    words.join(" ")
}

/// A pod, from the words of its line. Its UID is its name, unless one is written behind it.
pub fn pod(words: &[&str]) -> Value {
    let [id, rest @ ..] = words else { panic!("a pod has a name") };
    let (id, uid) = id.split_once('#').map_or((*id, None), |(id, uid)| (id, Some(uid)));
    let (namespace, name) = place(id);
    let mut object = json!({
        "metadata": {"namespace": namespace, "name": name, "uid": uid.unwrap_or(name)},
        "spec": {"volumes": []},
        "status": {"phase": "Pending"},
    });
    for word in rest {
        let volumes = object["spec"]["volumes"].as_array_mut().expect("volumes are a list");
        match split(word) {
            ("claim", Some(claim)) => {
                volumes.push(json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
            }
            ("eph", Some(text)) => volumes.push(ephemeral(text)),
            ("eph-label", Some(label)) => {
                let (key, value) = pair(label);
                template_of_last(volumes)["metadata"]["labels"][key] = value.into();
            }
            ("eph-node", Some(node)) => {
                template_of_last(volumes)["metadata"]["annotations"][Annotation::SelectedNode.key()] = node.into();
            }
            ("empty-dir", None) => volumes.push(json!({"name": "empty", "emptyDir": {}})),
            ("node", Some(node)) => object["spec"]["nodeName"] = node.into(),
            ("phase", Some(phase)) => object["status"]["phase"] = phase.into(),
            ("deleting", grace) => {
                delete(&mut object);
                if let Some(grace) = grace {
                    object["metadata"]["deletionGracePeriodSeconds"] = grace.parse::<i64>().expect("seconds").into();
                }
            }
            ("container", Some(state)) => contain(&mut object["status"], "containerStatuses", state),
            ("init-container", Some(state)) => contain(&mut object["status"], "initContainerStatuses", state),
            ("debug-container", Some(state)) => contain(&mut object["status"], "ephemeralContainerStatuses", state),
            (key, value) => {
                let is_said = scheduling::schedule(&mut object, key, value);
                assert!(is_said, "{word:?} says nothing about a pod");
            }
        }
    }
    object
}

/// An ephemeral volume, by its name, and the size and the class of its claim.
fn ephemeral(text: &str) -> Value {
    let mut texts = text.split(':');
    let name = texts.next().unwrap_or_default();
    let size = texts.next().unwrap_or("1Gi");
    let mut spec = json!({
        "accessModes": long_modes(DEFAULT_MODES),
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": size}},
    });
    if let Some(class) = texts.next() {
        spec["storageClassName"] = class.into();
    }
    json!({"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
}

fn template_of_last(volumes: &mut [Value]) -> &mut Value {
    let volume = volumes.last_mut().expect("a volume stands before what is said of it");
    &mut volume["ephemeral"]["volumeClaimTemplate"]
}

/// A container of a pod: `running`, `waiting`, `terminated`, or `nothing` when nothing is said of its state.
fn contain(status: &mut Value, field: &str, state: &str) {
    let container = json!({"name": state, "state": if state == "nothing" { json!({}) } else { json!({state: {}}) }});
    match status[field].as_array_mut() {
        Some(containers) => containers.push(container),
        None => status[field] = json!([container]),
    }
}
