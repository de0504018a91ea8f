//! The Node object of a simulated node, and its lease.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The label of simulated nodes.
pub const SIMULATED: &str = "bindery/simulated";
/// The maximum number of nodes. Each renews a lease every ten seconds, so this many cause 500
/// writes a second.
pub const NODES_MAX: u32 = 5000;

/// The taint of every new node until it is ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The zones, assigned round-robin.
const ZONES: [&str; 3] = ["zone-1", "zone-2", "zone-3"];
const REGION: &str = "region-1";
/// How many nodes share the third byte of their IP address.
const NODES_PER_BLOCK: u32 = 250;
/// The lease duration in seconds: four renewal intervals.
const LEASE_SECONDS: u32 = 40;

/// The Node with this number, from 1.
pub fn node(number: u32, now: &str) -> Value {
    let name = format!("node-{number}");
    let index = number.saturating_sub(1);
    let resources = json!({"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    let range = format!("10.{}.{}.0/24", 128 + index / 256, index % 256);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture(),
            "node.kubernetes.io/instance-type": "simulated",
            "topology.kubernetes.io/region": REGION,
            "topology.kubernetes.io/zone": ZONES[index as usize % ZONES.len()],
            SIMULATED: "true",
        }},
        "spec": {"podCIDR": range, "podCIDRs": [range], "providerID": format!("bindery://{name}")},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": format!("172.16.{}.{}", index / NODES_PER_BLOCK, index % NODES_PER_BLOCK + 1)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": conditions(&Value::Null, now),
            "nodeInfo": {
                "architecture": architecture(),
                "operatingSystem": "linux",
                "osImage": "none (a simulated node)",
                "kernelVersion": "none",
                "containerRuntimeVersion": "none://",
                "kubeletVersion": concat!("v1.36.4-fake.", env!("CARGO_PKG_VERSION")),
                "kubeProxyVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    })
}

/// This machine's architecture as Kubernetes spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The conditions of a healthy node. An unchanged condition keeps its transition time.
pub fn conditions(node: &Value, now: &str) -> Value {
    let conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "a simulated node never runs out of memory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "a simulated node never runs out of disk"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "a simulated node never runs out of processes"),
        ("Ready", "True", "KubeletReady", "the simulated kubelet is ready"),
    ];
    let before = node["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = |(kind, status, reason, message): (&str, &str, &str, &str)| {
        let same = before.iter().find(|one| one["type"] == kind && one["status"] == status);
        let since = same.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": since,
        })
    };
    conditions.into_iter().map(condition).collect()
}

/// The node's taints without the not-ready taint; `None` if it does not have that taint.
pub fn taints_when_ready(node: &Value) -> Option<Value> {
    let taints = node["spec"]["taints"].as_array()?;
    let is_not_ready = |taint: &&Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    taints
        .iter()
        .any(|taint| is_not_ready(&taint))
        .then(|| taints.iter().filter(|taint| !is_not_ready(taint)).cloned().collect())
}

/// The content of a node's lease.
pub fn lease(node: &str, uid: &str, now: Timestamp) -> Value {
    json!({
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}]},
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const NOW: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn every_node_has_a_unique_name_address_and_range() {
        let mut seen = BTreeSet::new();
        for number in 1..=NODES_MAX {
            let node = node(number, NOW);
            let address = node["status"]["addresses"][0]["address"].as_str().expect("an address");
            assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
            for text in
                [&node["metadata"]["name"], &node["status"]["addresses"][0]["address"], &node["spec"]["podCIDR"]]
            {
                assert!(seen.insert(text.to_string()), "{text} is not unique");
            }
        }
    }

    #[test]
    fn zones_are_assigned_round_robin() {
        let zone = |number| node(number, NOW)["metadata"]["labels"]["topology.kubernetes.io/zone"].clone();
        assert_eq!([1, 2, 3, 4].map(zone), ["zone-1", "zone-2", "zone-3", "zone-1"]);
    }

    #[test]
    fn unchanged_condition_keeps_its_transition_time() {
        let mut was = node(1, NOW);
        was["status"]["conditions"][2]["status"] = "Unknown".into();
        let later = "2026-01-02T00:00:00Z";
        let conditions = conditions(&was, later);
        let since = |index: usize| conditions[index]["lastTransitionTime"].as_str().map(str::to_owned);
        assert_eq!(since(3).as_deref(), Some(NOW), "it was True before");
        assert_eq!(since(2).as_deref(), Some(later), "it was Unknown before");
        assert_eq!(conditions[3]["lastHeartbeatTime"], later);
    }

    #[test]
    fn only_the_not_ready_taint_is_removed() {
        let mine = json!({"key": "mine", "effect": "NoSchedule"});
        let evicting = json!({"key": NOT_READY, "effect": "NoExecute"});
        let tainted = json!({"spec": {"taints": [mine, {"key": NOT_READY, "effect": "NoSchedule"}, evicting]}});
        assert_eq!(taints_when_ready(&tainted), Some(json!([mine, evicting])));
        assert_eq!(taints_when_ready(&json!({"spec": {"taints": [mine]}})), None);
        assert_eq!(taints_when_ready(&json!({})), None);
    }
}
