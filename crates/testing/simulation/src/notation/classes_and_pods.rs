//! The lines of classes, attributes classes and pods.

use bindery_model::{Annotation, AttributesClass, finalizer};
use serde_json::{Value, json};

use super::{DEFAULT_MODES, delete, finalizer_words, long_modes, namespaced, pair, scheduling, split};
use crate::simulated_cluster::NOW;

/// A class, from the words of its line.
pub fn class(words: &[&str]) -> Value {
    let [name, provisioner, rest @ ..] = words else { panic!("a class needs a name and a provisioner: {words:?}") };
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
            // One term per word: zone:a|b,rack:1
            ("allow", Some(term)) => {
                let label = |text: &str| {
                    let (key, values) = pair(text);
                    json!({"key": key, "values": values.split('|').collect::<Vec<_>>()})
                };
                let labels: Vec<Value> = term.split(',').map(label).collect();
                scheduling::push(&mut object["allowedTopologies"], json!({"matchLabelExpressions": labels}));
            }
            ("mount", Some(option)) => object["mountOptions"] = json!([option]),
            (_, _) => panic!("{word:?} is unknown for a class"),
        }
    }
    object
}

/// An attributes class, from the words of its line.
pub fn attributes_class(words: &[&str]) -> Value {
    let [name, rest @ ..] = words else { panic!("an attributes class needs a name") };
    let mut object = json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "driverName": "example.com/csi"});
    let mut finalizers = Vec::new();
    for word in rest {
        match split(word) {
            ("fin", Some(name)) => finalizers.push(name),
            ("protected", None) => finalizers.push(finalizer::VAC_PROTECTION),
            ("deleting", None) => delete(&mut object),
            (_, _) => panic!("{word:?} is unknown for an attributes class"),
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

/// A pod, from the words of its line. Its UID is its name, unless it is written as `name#uid`.
pub fn pod(words: &[&str]) -> Value {
    let [id, rest @ ..] = words else { panic!("a pod needs a name") };
    let (id, uid) = id.split_once('#').map_or((*id, None), |(id, uid)| (id, Some(uid)));
    let (namespace, name) = namespaced(id);
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
            ("container", Some(state)) => add_container(&mut object["status"], "containerStatuses", state),
            ("init-container", Some(state)) => add_container(&mut object["status"], "initContainerStatuses", state),
            ("debug-container", Some(state)) => {
                add_container(&mut object["status"], "ephemeralContainerStatuses", state)
            }
            (key, value) => {
                let is_known = scheduling::schedule(&mut object, key, value);
                assert!(is_known, "{word:?} is unknown for a pod");
            }
        }
    }
    object
}

/// An ephemeral volume: `name:size:class`.
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
    let volume = volumes.last_mut().expect("an ephemeral volume precedes its fields");
    &mut volume["ephemeral"]["volumeClaimTemplate"]
}

/// Adds a container status: `running`, `waiting`, `terminated`, or `nothing` for no state.
fn add_container(status: &mut Value, field: &str, state: &str) {
    let container = json!({"name": state, "state": if state == "nothing" { json!({}) } else { json!({state: {}}) }});
    match status[field].as_array_mut() {
        Some(containers) => containers.push(container),
        None => status[field] = json!([container]),
    }
}
