//! The lines of nodes and CSINodes, and the words of pods that affect scheduling.
//!
//! ```text
//! node n1 label=zone:a cpu=2 memory=4Gi pods=10 other=example.com/gpu:2
//!         taint=gpu:yes:NoSchedule cordoned
//! pod  p  cpu=500m memory=1Gi other=example.com/gpu:1 port=80 sel=zone:a on=n1 likes=n2:50
//!         tolerates=gpu label=app:db near=app:db apart=app:web spread=app:db@zone:1 gate=wait
//!         priority=7 created=2026-01-01T00:00:00Z scheduler=mine nominated=n1 devices=claim
//! ```
//!
//! A node has 8 CPUs, 16Gi of memory and accepts 110 pods by default. `near` and `apart` are pod
//! affinity and anti-affinity, `spread` is a topology spread constraint with its maxSkew; their
//! topology key is the host name, or follows an `@`.

use serde_json::{Value, json};

use super::{pair, split};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node, from the words of its line.
pub fn node(words: &[&str]) -> Value {
    let [name, rest @ ..] = words else { panic!("a node needs a name") };
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
    });
    for word in rest {
        match split(word) {
            ("label", Some(label)) => {
                let (key, value) = pair(label);
                object["metadata"]["labels"][key] = value.into();
            }
            (what @ ("cpu" | "memory" | "pods"), Some(amount)) => object["status"]["allocatable"][what] = amount.into(),
            ("other", Some(text)) => {
                let (what, amount) = pair(text);
                object["status"]["allocatable"][what] = amount.into();
            }
            ("taint", Some(text)) => {
                let (key, rest) = pair(text);
                let (value, effect) = pair(rest);
                push(&mut object["spec"]["taints"], json!({"key": key, "value": value, "effect": effect}));
            }
            ("cordoned", None) => object["spec"]["unschedulable"] = true.into(),
            (_, _) => panic!("unknown word {word:?} for a node"),
        }
    }
    object
}

/// A CSINode, from the words of its line: drivers with their topology keys.
pub fn csi_node(words: &[&str]) -> Value {
    let [name, rest @ ..] = words else { panic!("a CSINode needs a name") };
    let driver = |word: &&str| match split(word) {
        ("driver", Some(text)) => {
            let (driver, keys) = text.split_once(':').unwrap_or((text, ""));
            let keys: Vec<&str> = keys.split(',').filter(|key| !key.is_empty()).collect();
            json!({"name": driver, "nodeID": name, "topologyKeys": keys})
        }
        (_, _) => panic!("unknown word {word:?} for a CSINode"),
    };
    let drivers: Vec<Value> = rest.iter().map(driver).collect();
    json!({"metadata": {"name": name, "uid": name}, "spec": {"drivers": drivers}})
}

/// The node affinity of a volume that is reachable from one node only.
pub fn on_node(name: &str) -> Value {
    json!({"required": {"nodeSelectorTerms": [term(name)]}})
}

fn term(node: &str) -> Value {
    json!({"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]})
}

/// Parses a token of a pod as a scheduling constraint; `false` if it is none.
pub fn schedule(object: &mut Value, key: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    let spec = &mut object["spec"];
    match key {
        "cpu" | "memory" => request(spec, key, value),
        "other" => {
            let (what, amount) = pair(value);
            request(spec, what, amount);
        }
        "port" => {
            let port: i32 = value.parse().expect("a port is a number");
            let port = json!({"containerPort": port, "hostPort": port});
            push(&mut spec["containers"], json!({"name": format!("port-{value}"), "ports": [port]}));
        }
        "sel" => {
            let (key, value) = pair(value);
            spec["nodeSelector"][key] = value.into();
        }
        "on" => {
            spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                on_node(value)["required"].clone();
        }
        "likes" => {
            let (node, weight) = pair(value);
            let weight: i32 = weight.parse().expect("a weight is a number");
            let preferred = &mut spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
            push(preferred, json!({"weight": weight, "preference": term(node)}));
        }
        "tolerates" => push(&mut spec["tolerations"], json!({"key": value, "operator": "Exists"})),
        "near" | "apart" => {
            let kind = if key == "near" { "podAffinity" } else { "podAntiAffinity" };
            push(&mut spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"], affinity_term(value));
        }
        "spread" => {
            let (rest, skew) = value.rsplit_once(':').expect("expected spread=LABEL:SKEW");
            let mut spread = affinity_term(rest);
            spread["maxSkew"] = skew.parse::<i32>().expect("a skew is a number").into();
            spread["whenUnsatisfiable"] = "DoNotSchedule".into();
            push(&mut spec["topologySpreadConstraints"], spread);
        }
        "devices" => push(&mut spec["resourceClaims"], json!({"name": value, "resourceClaimName": value})),
        "gate" => push(&mut spec["schedulingGates"], json!({"name": value})),
        "priority" => spec["priority"] = value.parse::<i32>().expect("a priority is a number").into(),
        "scheduler" => spec["schedulerName"] = value.into(),
        "created" => object["metadata"]["creationTimestamp"] = value.into(),
        "label" => {
            let (key, value) = pair(value);
            object["metadata"]["labels"][key] = value.into();
        }
        "nominated" => object["status"]["nominatedNodeName"] = value.into(),
        _ => return false,
    }
    true
}

/// Adds a resource request to a pod.
fn request(spec: &mut Value, what: &str, amount: &str) {
    if spec["containers"].is_null() {
        spec["containers"] = json!([{"name": "c"}]);
    }
    spec["containers"][0]["resources"]["requests"][what] = amount.into();
}

/// An affinity term: a pod label, and the topology key.
fn affinity_term(text: &str) -> Value {
    let (label, topology) = text.split_once('@').unwrap_or((text, HOSTNAME));
    let (key, value) = pair(label);
    json!({"labelSelector": {"matchLabels": {key: value}}, "topologyKey": topology})
}

/// Appends to a list, or creates it.
pub fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

/// The line of [`super::pod_nodes`] for a pod.
pub fn pod_node(pod: &bindery_model::Pod) -> String {
    let key = pod.key().to_string();
    let name = key.trim_start_matches("default/");
    let scheduling = &pod.scheduling;
    if !pod.node.is_empty() {
        format!("{name}@{}", pod.node)
    } else if !scheduling.nominated_node.is_empty() {
        format!("{name}>{}", scheduling.nominated_node)
    } else {
        format!("{name}: {}", scheduling.unschedulable.as_deref().unwrap_or_default())
    }
}
