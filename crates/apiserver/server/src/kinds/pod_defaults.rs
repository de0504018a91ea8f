//! Defaults of pods.

use super::strategy::round_up_to_milli;
use crate::value::{at, list, map, set, set_if_empty, text};
use serde_json::{Value, json};

/// Sets the defaults of a pod.
pub(super) fn set_defaults(pod: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
    ] {
        set_if_empty(pod, &["spec", field], value);
    }
    if at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).is_some_and(|grace| grace < 0) {
        set(pod, &["spec", "terminationGracePeriodSeconds"], 1);
    }
    sync_service_account_names(pod);
    sync_pod_ips(pod);
    let host_network = at(pod, &["spec", "hostNetwork"]) == Some(&Value::Bool(true));
    for part in ["containers", "initContainers", "ephemeralContainers"] {
        for_each_item(pod, &["spec", part], |container| fill_in_container(container, host_network));
    }
    for_each_item(pod, &["spec", "volumes"], fill_in_volume);
}

/// The service account has a deprecated field, which is kept equal.
fn sync_service_account_names(pod: &mut Value) {
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

/// podIP is the first of podIPs; if they differ, podIP is used.
fn sync_pod_ips(pod: &mut Value) {
    let alone = text(pod, &["status", "podIP"]).to_owned();
    let first = list(pod, &["status", "podIPs"]).first().map_or("", |one| text(one, &["ip"])).to_owned();
    if alone.is_empty() && !first.is_empty() {
        set(pod, &["status", "podIP"], first);
    } else if alone != first {
        set(pod, &["status", "podIPs"], json!([{"ip": alone}]));
    }
}

fn for_each_item(object: &mut Value, path: &[&str], change: impl Fn(&mut Value)) {
    let found = path.iter().try_fold(object, |value, step| value.get_mut(step));
    found.and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
}

fn fill_in_container(container: &mut Value, host_network: bool) {
    set_if_empty(container, &["resources"], json!({}));
    set_if_empty(container, &["terminationMessagePath"], "/dev/termination-log");
    set_if_empty(container, &["terminationMessagePolicy"], "File");
    let image = text(container, &["image"]);
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    set_if_empty(container, &["imagePullPolicy"], if latest { "Always" } else { "IfNotPresent" });
    for_each_item(container, &["ports"], |port| {
        set_if_empty(port, &["protocol"], "TCP");
        if host_network && at(port, &["hostPort"]).is_none() {
            let same = at(port, &["containerPort"]).cloned().unwrap_or_default();
            set(port, &["hostPort"], same);
        }
    });
    for_each_item(container, &["env"], |variable| {
        if at(variable, &["valueFrom", "fieldRef"]).is_some() {
            set_if_empty(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1");
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
    round_up_to_milli(container, &["resources", "limits"]);
    round_up_to_milli(container, &["resources", "requests"]);
    let limits: Vec<(String, Value)> = map(container, &["resources", "limits"])
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, limit) in limits {
        set_if_empty(container, &["resources", "requests", &name], limit);
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
        set_if_empty(container, &[probe, "grpc", "service"], "");
    }
}

fn fill_in_http(container: &mut Value, path: &[&str]) {
    if at(container, path).is_none() {
        return;
    }
    for (field, value) in [("path", "/"), ("scheme", "HTTP")] {
        let full: Vec<&str> = path.iter().copied().chain([field]).collect();
        set_if_empty(container, &full, value);
    }
}

fn fill_in_volume(volume: &mut Value) {
    if map(volume, &[]).is_none_or(|volume| volume.len() <= 1) {
        set(volume, &["emptyDir"], json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if at(volume, &[source]).is_some() {
            set_if_empty(volume, &[source, "defaultMode"], 420);
        }
    }
    if at(volume, &["hostPath"]).is_some() {
        set_if_empty(volume, &["hostPath", "type"], "");
    }
    let field = |item: &mut Value| {
        if at(item, &["fieldRef"]).is_some() {
            set_if_empty(item, &["fieldRef", "apiVersion"], "v1");
        }
    };
    for_each_item(volume, &["downwardAPI", "items"], field);
    for_each_item(volume, &["projected", "sources"], |source| {
        if at(source, &["serviceAccountToken"]).is_some() {
            set_if_empty(source, &["serviceAccountToken", "expirationSeconds"], 3600);
        }
        for_each_item(source, &["downwardAPI", "items"], field);
    });
    if at(volume, &["ephemeral", "volumeClaimTemplate"]).is_some() {
        set_if_empty(volume, &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"], "Filesystem");
    }
    if at(volume, &["iscsi"]).is_some() {
        set_if_empty(volume, &["iscsi", "iscsiInterface"], "default");
    }
}

/// Admission: tolerate a node that is not ready or unreachable for five minutes.
pub(super) fn add_default_tolerations(pod: &mut Value) {
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

/// The priority of a pod's class; `None` if the class does not exist.
pub(super) fn priority(pod: &Value) -> Option<i64> {
    match text(pod, &["spec", "priorityClassName"]) {
        "" => Some(0),
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

/// The quality of service class, from requests and limits.
pub(super) fn qos_class(pod: &Value) -> &'static str {
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
