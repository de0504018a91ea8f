//! Node.

use super::{
    AGE, DEFAULT_KIND, Kind, NAME, PrintContext, Selectable, Strategy, WriteContext, column, print, status_of, wide,
};
use crate::field_errors::FieldErrors;
use crate::names;
use crate::status::Status;
use crate::value::{at, entries, list, set, text, texts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(crate) static KIND: Kind = Kind {
    kind: "Node",
    plural: "nodes",
    short_names: &["no"],
    subresources: &[status_of("", "Node")],
    columns: &[
        NAME,
        column("Status", "Whether the node is ready."),
        column("Roles", "The roles of the node."),
        AGE,
        column("Version", "The kubelet's version."),
        wide("Internal-IP", "The internal address."),
        wide("External-IP", "The external address."),
        wide("OS-Image", "The operating system."),
        wide("Kernel-Version", "The kernel version."),
        wide("Container-Runtime", "The container runtime."),
    ],
    cells,
    strategy: &Node,
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
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
        print::age(object, context),
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

impl Strategy for Node {
    fn set_defaults(&self, object: &mut Value) {
        if at(object, &["status", "allocatable"]).is_none()
            && let Some(capacity) = at(object, &["status", "capacity"]).cloned()
        {
            set(object, &["status", "allocatable"], capacity);
        }
        // podCIDR is the first of podCIDRs.
        let first = list(object, &["spec", "podCIDRs"]).first().cloned();
        match (text(object, &["spec", "podCIDR"]).to_owned(), first) {
            (one, None) if !one.is_empty() => set(object, &["spec", "podCIDRs"], json!([one])),
            (one, Some(first)) if one.is_empty() => set(object, &["spec", "podCIDR"], first),
            (_, _) => {}
        }
    }

    fn admit(&self, object: &mut Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        // No pod is scheduled to a node before the node controller has seen it.
        let mut taints = list(object, &["spec", "taints"]).to_vec();
        if !taints.iter().any(|taint| text(taint, &["key"]) == NOT_READY && text(taint, &["effect"]) == "NoSchedule") {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            set(object, &["spec", "taints"], taints);
        }
        Ok(())
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let mut seen = BTreeSet::new();
        for (index, taint) in list(object, &["spec", "taints"]).iter().enumerate() {
            // Upstream's path is wrong, too.
            let path = format!("metadata.taints[{index}]");
            let [key, value, effect] = ["key", "value", "effect"].map(|field| text(taint, &[field]));
            for error in names::qualified(key) {
                errors.invalid(format!("{path}.key"), key, &error);
            }
            for error in names::label_value(value) {
                errors.invalid(format!("{path}.value"), value, &error);
            }
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            if effect.is_empty() {
                errors.required(format!("{path}.effect"), "");
            } else if !effects.contains(&effect) {
                errors.unsupported(format!("{path}.effect"), effect, &effects);
            }
            if !seen.insert((key, effect)) {
                // As Go prints the struct.
                let [key, value, effect] = [key, value, effect].map(Value::from);
                let added = at(taint, &["timeAdded"]).cloned().unwrap_or_default();
                let shown = format!(r#"{{"Key":{key},"Value":{value},"Effect":{effect},"TimeAdded":{added}}}"#);
                errors.duplicate_text(path, &shown, "taints must be unique by key and effect pair");
            }
        }
        for (index, range) in texts(object, &["spec", "podCIDRs"]).enumerate() {
            if !is_cidr(range) {
                let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.invalid(format!("spec.podCIDRs[{index}]"), range, why);
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        self.validate(new, context, errors);
        for field in ["providerID", "podCIDRs"] {
            let (was, is) = (at(old, &["spec", field]), at(new, &["spec", field]));
            if was.is_some_and(|was| was != "") && was != is {
                let why = match field {
                    "providerID" => "node updates may not change providerID except from \"\" to valid",
                    _ => "node updates may not change podCIDR except from \"\" to valid",
                };
                errors.forbidden(format!("spec.{field}"), why);
            }
        }
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
        &[("spec.unschedulable", |node| (at(node, &["spec", "unschedulable"]) == Some(&Value::Bool(true))).to_string())]
    }
}

/// Whether a text is an address range such as `10.9.8.0/24`.
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}
