//! Node.

use super::{AGE, ALL_VERBS, Kind, MANNERS, NAME, Rules, Scene, Selectable, Sight, column, print, status_of, wide};
use crate::invalid::FieldErrors;
use crate::names;
use crate::status::Status;
use crate::value::{at, entries, list, set, text, texts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[status_of("", "Node")],
    columns: &[
        NAME,
        column("Status", "Whether it is ready."),
        column("Roles", "What it is for."),
        AGE,
        column("Version", "The kubelet's version."),
        wide("Internal-IP", "Its address within the cluster."),
        wide("External-IP", "Its address outside of the cluster."),
        wide("OS-Image", "Its operating system."),
        wide("Kernel-Version", "Its kernel."),
        wide("Container-Runtime", "What runs containers on it."),
    ],
    cells,
    space: "nodes",
    rules: &Node,
    manners: MANNERS,
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let mut status: Vec<&str> = Vec::new();
    for condition in list(object, &["status", "conditions"]).iter().filter(|one| text(one, &["type"]) == "Ready") {
        status.push(if text(condition, &["status"]) == "True" { "Ready" } else { "NotReady" });
    }
    if status.is_empty() {
        status.push("Unknown");
    }
    if at(object, &["spec", "unschedulable"]) == Some(&Value::Bool(true)) {
        status.push("SchedulingDisabled");
    }
    let roles: BTreeSet<&str> = entries(object, &["metadata", "labels"])
        .filter_map(|(key, value)| match key {
            "kubernetes.io/role" => value.as_str(),
            _ => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") };
    let address = |kind: &str| {
        let found = list(object, &["status", "addresses"]).iter().find(|one| text(one, &["type"]) == kind);
        found.map_or("<none>", |one| text(one, &["address"]))
    };
    let info = |field| match text(object, &["status", "nodeInfo", field]) {
        "" => "<unknown>",
        value => value,
    };
    vec![
        print::name(object),
        status.join(",").into(),
        roles.into(),
        print::age(object, sight),
        text(object, &["status", "nodeInfo", "kubeletVersion"]).into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage").into(),
        info("kernelVersion").into(),
        info("containerRuntimeVersion").into(),
    ]
}

#[derive(Debug)]
struct Node;

impl Rules for Node {
    fn fill_in(&self, object: &mut Value) {
        if at(object, &["status", "allocatable"]).is_none()
            && let Some(capacity) = at(object, &["status", "capacity"]).cloned()
        {
            set(object, &["status", "allocatable"], capacity);
        }
        // Two fields for one thing: the older holds the first of the newer.
        let first = list(object, &["spec", "podCIDRs"]).first().cloned();
        match (text(object, &["spec", "podCIDR"]).to_owned(), first) {
            (one, None) if !one.is_empty() => set(object, &["spec", "podCIDRs"], json!([one])),
            (one, Some(first)) if one.is_empty() => set(object, &["spec", "podCIDR"], first),
            (_, _) => {}
        }
    }

    fn admit(&self, object: &mut Value, _scene: &Scene<'_>) -> Result<(), Status> {
        // Nothing is to be scheduled on a node before its controller has seen it.
        let mut taints = list(object, &["spec", "taints"]).to_vec();
        if !taints.iter().any(|taint| text(taint, &["key"]) == NOT_READY && text(taint, &["effect"]) == "NoSchedule") {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            set(object, &["spec", "taints"], taints);
        }
        Ok(())
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let mut seen = BTreeSet::new();
        for (index, taint) in list(object, &["spec", "taints"]).iter().enumerate() {
            // The path is upstream's, mistaken as it is.
            let path = format!("metadata.taints[{index}]");
            let [key, value, effect] = ["key", "value", "effect"].map(|field| text(taint, &[field]));
            for flaw in names::qualified(key) {
                flaws.invalid(format!("{path}.key"), key, &flaw);
            }
            for flaw in names::label_value(value) {
                flaws.invalid(format!("{path}.value"), value, &flaw);
            }
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            if effect.is_empty() {
                flaws.required(format!("{path}.effect"), "");
            } else if !effects.contains(&effect) {
                flaws.unsupported(format!("{path}.effect"), effect, &effects);
            }
            if !seen.insert((key, effect)) {
                // As Go shows its own struct.
                let [key, value, effect] = [key, value, effect].map(Value::from);
                let added = at(taint, &["timeAdded"]).cloned().unwrap_or_default();
                let shown = format!(r#"{{"Key":{key},"Value":{value},"Effect":{effect},"TimeAdded":{added}}}"#);
                flaws.duplicate_text(path, &shown, "taints must be unique by key and effect pair");
            }
        }
        for (index, range) in texts(object, &["spec", "podCIDRs"]).enumerate() {
            if !is_cidr(range) {
                let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                flaws.invalid(format!("spec.podCIDRs[{index}]"), range, why);
            }
        }
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        self.check(new, scene, flaws);
        for field in ["providerID", "podCIDRs"] {
            let (was, is) = (at(old, &["spec", field]), at(new, &["spec", field]));
            if was.is_some_and(|was| was != "") && was != is {
                let why = match field {
                    "providerID" => "node updates may not change providerID except from \"\" to valid",
                    _ => "node updates may not change podCIDR except from \"\" to valid",
                };
                flaws.forbidden(format!("spec.{field}"), why);
            }
        }
    }

    fn selectable(&self) -> &'static [Selectable] {
        &[("spec.unschedulable", |node| (at(node, &["spec", "unschedulable"]) == Some(&Value::Bool(true))).to_string())]
    }
}

/// Whether a text is a range of addresses, such as `10.9.8.0/24`.
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
