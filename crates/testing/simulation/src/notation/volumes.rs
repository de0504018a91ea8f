//! The lines of volumes.

use bindery_model::{Source, Volume, finalizer};
use serde_json::{Map, Value, json};

use super::scheduling::on_node;
use super::{
    DEFAULT_MODES, annotate, delete, finalizer_words, long_modes, marks, namespaced, pair, short_modes, split,
};

fn claim_ref(text: &str) -> Value {
    let (name, uid) = text.split_once('#').unwrap_or((text, ""));
    let (namespace, name) = namespaced(name);
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
        "flex" => return ("flexVolume".into(), json!({"driver": rest})),
        // An in-tree source that was migrated to CSI, by the name of its field.
        _ => json!({"of": rest}),
    };
    (plugin.into(), value)
}

/// A volume, from the words of its line.
pub fn parse(words: &[&str]) -> Value {
    let [name, capacity, phase, rest @ ..] = words else {
        panic!("a volume needs a name, a capacity and a phase: {words:?}")
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
            (text, Some(value)) if text.starts_with("->") => panic!("invalid reference {text}={value}"),
            ("class", Some(class)) => spec["storageClassName"] = class.into(),
            ("policy", Some(policy)) => spec["persistentVolumeReclaimPolicy"] = policy.into(),
            ("mode", Some(mode)) => spec["volumeMode"] = mode.into(),
            ("modes", Some(modes)) => spec["accessModes"] = long_modes(modes).into(),
            ("vac", Some(class)) => spec["volumeAttributesClassName"] = class.into(),
            ("source", Some(text)) => {
                let (plugin, value) = source(text);
                spec[plugin] = value;
            }
            ("on", Some(node)) => spec["nodeAffinity"] = on_node(node),
            ("fin", Some(name)) => finalizers.push(name),
            ("protected", None) => finalizers.push(finalizer::PV_PROTECTION),
            ("label", Some(label)) => {
                let (key, value) = pair(label);
                labels.insert(key.into(), value.into());
            }
            // Spaces in a message are written as underscores.
            ("msg", Some(message)) => object["status"]["message"] = message.replace('_', " ").into(),
            ("deleting", None) => delete(&mut object),
            (key, value) => assert!(annotate(&mut annotations, key, value), "unknown word {word:?} for a volume"),
        }
    }
    object["metadata"]["annotations"] = annotations.into();
    object["metadata"]["labels"] = labels.into();
    object["metadata"]["finalizers"] = finalizers.into();
    object
}

/// The line of a volume.
pub fn line(volume: &Volume, value: &Value) -> String {
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
        Source::Flex(driver) => Some(format!("flex:{driver}")),
        Source::Migrated(_) => migrated(value),
        Source::Local(_) | Source::Other => None,
    };
    words.extend(source.map(|source| format!("source={source}")));
    words.extend(finalizer_words(&volume.finalizers, finalizer::PV_PROTECTION));
    marks(&mut words, &volume.annotations);
    words.extend(volume.deleting.then(|| "deleting".to_owned()));
    words.extend((!volume.message.is_empty()).then(|| format!("msg={}", volume.message.replace(' ', "_"))));
    words.join(" ")
}

/// The source of a volume that was migrated to CSI.
fn migrated(value: &Value) -> Option<String> {
    let fields = value["spec"].as_object()?;
    fields.iter().find_map(|(field, source)| Some(format!("{field}:{}", source.get("of")?.as_str()?)))
}
