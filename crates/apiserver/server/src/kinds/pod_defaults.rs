//! What is filled in where a pod says nothing.

use super::rules::round_up;
use crate::value::{at, list, map, set, set_default, text};
use serde_json::{Value, json};

/// Fills in a pod.
pub(super) fn fill_in(pod: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
    ] {
        set_default(pod, &["spec", field], value);
    }
    if at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).is_some_and(|grace| grace < 0) {
        set(pod, &["spec", "terminationGracePeriodSeconds"], 1);
    }
    both_names_of_account(pod);
    both_forms_of_address(pod);
    let host_network = at(pod, &["spec", "hostNetwork"]) == Some(&Value::Bool(true));
    for part in ["containers", "initContainers", "ephemeralContainers"] {
        each(pod, &["spec", part], |container| fill_in_container(container, host_network));
    }
    each(pod, &["spec", "volumes"], fill_in_volume);
}

/// The account has an old name and a new one, and both are kept.
fn both_names_of_account(pod: &mut Value) {
    let name = match text(pod, &["spec", "serviceAccountName"]) {
        "" => text(pod, &["spec", "serviceAccount"]),
        name => name,
    };
    if !name.is_empty() {
        let name = name.to_owned();
        set(pod, &["spec", "serviceAccount"], name.as_str());
        set(pod, &["spec", "serviceAccountName"], name);
    }
}

/// The address stands alone, and first in a list; if they differ, the one that stands alone counts.
fn both_forms_of_address(pod: &mut Value) {
    let alone = text(pod, &["status", "podIP"]).to_owned();
    let first = list(pod, &["status", "podIPs"]).first().map_or("", |one| text(one, &["ip"])).to_owned();
    if alone.is_empty() && !first.is_empty() {
        set(pod, &["status", "podIP"], first);
    } else if alone != first {
        set(pod, &["status", "podIPs"], json!([{"ip": alone}]));
    }
}

fn each(object: &mut Value, path: &[&str], change: impl Fn(&mut Value)) {
    let found = path.iter().try_fold(object, |value, step| value.get_mut(step));
    found.and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

fn fill_in_container(container: &mut Value, host_network: bool) {
    set_default(container, &["resources"], json!({}));
    set_default(container, &["terminationMessagePath"], "/dev/termination-log");
    set_default(container, &["terminationMessagePolicy"], "File");
    let image = text(container, &["image"]);
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    set_default(container, &["imagePullPolicy"], if latest { "Always" } else { "IfNotPresent" });
    each(container, &["ports"], |port| {
        set_default(port, &["protocol"], "TCP");
        if host_network && at(port, &["hostPort"]).is_none() {
            let same = at(port, &["containerPort"]).cloned().unwrap_or_default();
            set(port, &["hostPort"], same);
        }
    });
    each(container, &["env"], |variable| {
        if at(variable, &["valueFrom", "fieldRef"]).is_some() {
            set_default(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1");
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if map(container, &[probe]).is_some() {
            fill_in_probe(container, probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        fill_in_http(container, &["lifecycle", hook, "httpGet"]);
    }
    round_up(container, &["resources", "limits"]);
    round_up(container, &["resources", "requests"]);
    let limits: Vec<(String, Value)> = map(container, &["resources", "limits"])
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, limit) in limits {
        set_default(container, &["resources", "requests", &name], limit);
    }
}

fn fill_in_probe(container: &mut Value, probe: &str) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if at(container, &[probe, field]).and_then(Value::as_i64).unwrap_or(0) == 0 {
            set(container, &[probe, field], value);
        }
    }
    fill_in_http(container, &[probe, "httpGet"]);
    if at(container, &[probe, "grpc"]).is_some() {
        set_default(container, &[probe, "grpc", "service"], "");
    }
}

fn fill_in_http(container: &mut Value, path: &[&str]) {
    if at(container, path).is_none() {
        return;
    }
    for (field, value) in [("path", "/"), ("scheme", "HTTP")] {
        let full: Vec<&str> = path.iter().copied().chain([field]).collect();
        set_default(container, &full, value);
    }
}

fn fill_in_volume(volume: &mut Value) {
    if map(volume, &[]).is_none_or(|volume| volume.len() <= 1) {
        set(volume, &["emptyDir"], json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if at(volume, &[source]).is_some() {
            set_default(volume, &[source, "defaultMode"], 420);
        }
    }
    if at(volume, &["hostPath"]).is_some() {
        set_default(volume, &["hostPath", "type"], "");
    }
    let field = |item: &mut Value| {
        if at(item, &["fieldRef"]).is_some() {
            set_default(item, &["fieldRef", "apiVersion"], "v1");
        }
    };
    each(volume, &["downwardAPI", "items"], field);
    each(volume, &["projected", "sources"], |source| {
        if at(source, &["serviceAccountToken"]).is_some() {
            set_default(source, &["serviceAccountToken", "expirationSeconds"], 3600);
        }
        each(source, &["downwardAPI", "items"], field);
    });
    if at(volume, &["ephemeral", "volumeClaimTemplate"]).is_some() {
        set_default(volume, &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"], "Filesystem");
    }
    if at(volume, &["iscsi"]).is_some() {
        set_default(volume, &["iscsi", "iscsiInterface"], "default");
    }
}

/// What admission gives every pod: it tolerates for some minutes that its node is away.
pub(super) fn tolerate(pod: &mut Value) {
    let mut tolerations = list(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|one| {
            let effect = text(one, &["effect"]);
            (text(one, &["key"]) == key || text(one, &["key"]).is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    if !tolerations.is_empty() {
        set(pod, &["spec", "tolerations"], tolerations);
    }
}

/// The priority of a pod's class; none if there is no such class.
pub(super) fn priority(pod: &Value) -> Option<i64> {
    match text(pod, &["spec", "priorityClassName"]) {
        "" => Some(0),
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

/// How well a pod is served when things get tight: by how exactly it says what it needs.
pub(super) fn quality(pod: &Value) -> &'static str {
    let containers = || list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
    let amount = |container: &Value, part: &str, name: &str| {
        at(container, &["resources", part, name]).and_then(Value::as_str).filter(|text| *text != "0").map(str::to_owned)
    };
    let names = ["cpu", "memory"];
    let says = containers()
        .any(|one| names.iter().any(|name| amount(one, "requests", name).or(amount(one, "limits", name)).is_some()));
    let exactly = containers().all(|one| {
        names.iter().all(|name| {
            let limit = amount(one, "limits", name);
            limit.is_some() && limit == amount(one, "requests", name)
        })
    });
    match (says, exactly) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
