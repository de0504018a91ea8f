//! What a simulated node looks like, and its lease.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The label of nodes that are simulated.
pub const SIMULATED: &str = "bindery/simulated";
/// How many nodes can be asked for. Each renews a lease every ten seconds, as real ones do; this many are 500 writes a second.
pub const MOST: u32 = 5000;

/// The taint that every new node bears until somebody has seen it.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Nodes take turns with these.
const ZONES: [&str; 3] = ["zone-1", "zone-2", "zone-3"];
const REGION: &str = "region-1";
/// How many nodes share the third number of their addresses.
const A_BLOCK: u32 = 250;
/// For how long a lease is good, in seconds: four times as long as until it is renewed.
const LEASE_SECONDS: u32 = 40;

/// The `number`th node that is made, from 1 on.
pub fn node(number: u32, now: &str) -> Value {
    let name = format!("node-{number}");
    let place = number.saturating_sub(1);
    let room = json!({"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    let range = format!("10.{}.{}.0/24", 128 + place / 256, place % 256);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture(),
            "node.kubernetes.io/instance-type": "simulated",
            "topology.kubernetes.io/region": REGION,
            "topology.kubernetes.io/zone": ZONES[place as usize % ZONES.len()],
            SIMULATED: "true",
        }},
        "spec": {"podCIDR": range, "podCIDRs": [range], "providerID": format!("bindery://{name}")},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": format!("172.16.{}.{}", place / A_BLOCK, place % A_BLOCK + 1)},
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

/// This machine's architecture, in the API's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// What the fake kubelet says of a node: that it is well. A condition that was so before keeps the moment since when.
pub fn conditions(node: &Value, now: &str) -> Value {
    let said = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "a simulated node never runs out of memory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "a simulated node never runs out of disk"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "a simulated node never runs out of processes"),
        ("Ready", "True", "KubeletReady", "the fake kubelet says so"),
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
    said.into_iter().map(condition).collect()
}

/// The taints of a node without the one that keeps pods away until the node is ready; nothing if it does not bear that one.
pub fn taints_when_ready(node: &Value) -> Option<Value> {
    let taints = node["spec"]["taints"].as_array()?;
    let is_it = |taint: &&Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
    taints.iter().any(|taint| is_it(&taint)).then(|| taints.iter().filter(|taint| !is_it(taint)).cloned().collect())
}

/// What a node's lease says when it is renewed.
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
    fn every_node_has_a_name_an_address_and_a_range_of_its_own() {
        let mut seen = BTreeSet::new();
        for number in 1..=MOST {
            let node = node(number, NOW);
            let address = node["status"]["addresses"][0]["address"].as_str().expect("an address");
            assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
            for text in
                [&node["metadata"]["name"], &node["status"]["addresses"][0]["address"], &node["spec"]["podCIDR"]]
            {
                assert!(seen.insert(text.to_string()), "{text} is there twice");
            }
        }
    }

    #[test]
    fn nodes_take_turns_with_the_zones() {
        let zone = |number| node(number, NOW)["metadata"]["labels"]["topology.kubernetes.io/zone"].clone();
        assert_eq!([1, 2, 3, 4].map(zone), ["zone-1", "zone-2", "zone-3", "zone-1"]);
    }

    #[test]
    fn a_heartbeat_keeps_the_moment_since_when_it_is_so() {
        let mut was = node(1, NOW);
        was["status"]["conditions"][2]["status"] = "Unknown".into();
        let later = "2026-01-02T00:00:00Z";
        let said = conditions(&was, later);
        let since = |index: usize| said[index]["lastTransitionTime"].as_str().map(str::to_owned);
        assert_eq!(since(3).as_deref(), Some(NOW), "it was ready before");
        assert_eq!(since(2).as_deref(), Some(later), "it was not known before");
        assert_eq!(said[3]["lastHeartbeatTime"], later);
    }

    #[test]
    fn only_the_taint_of_nodes_that_are_not_ready_goes() {
        let mine = json!({"key": "mine", "effect": "NoSchedule"});
        let evicting = json!({"key": NOT_READY, "effect": "NoExecute"});
        let tainted = json!({"spec": {"taints": [mine, {"key": NOT_READY, "effect": "NoSchedule"}, evicting]}});
        assert_eq!(taints_when_ready(&tainted), Some(json!([mine, evicting])));
        assert_eq!(taints_when_ready(&json!({"spec": {"taints": [mine]}})), None);
        assert_eq!(taints_when_ready(&json!({})), None);
    }
}
