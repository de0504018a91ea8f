//! What a pod is made of: volumes and containers.

use super::persistent_volume_claim::check_claim_spec;
use crate::invalid::FieldErrors;
use crate::names;
use crate::value::{at, entries, list, map, text};
use bindery_model::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;

/// Looks at the volumes; answers their names.
pub(super) fn check_volumes<'a>(object: &'a Value, flaws: &mut FieldErrors) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in list(object, &["spec", "volumes"]).iter().enumerate() {
        let path = format!("spec.volumes[{index}]");
        let (name, before) = (text(volume, &["name"]), flaws.len());
        let sources: Vec<&String> =
            map(volume, &[]).into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "name").collect();
        for extra in sources.iter().skip(1) {
            flaws.forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type");
        }
        if at(volume, &["persistentVolumeClaim"]).is_some()
            && text(volume, &["persistentVolumeClaim", "claimName"]).is_empty()
        {
            flaws.required(format!("{path}.persistentVolumeClaim.claimName"), "");
        }
        let path_of_template = format!("{path}.ephemeral.volumeClaimTemplate");
        match (at(volume, &["ephemeral"]), at(volume, &["ephemeral", "volumeClaimTemplate"])) {
            (Some(_), None) => flaws.required(path_of_template, ""),
            (Some(_), Some(template)) => check_template(template, &path_of_template, flaws),
            (None, _) => {}
        }
        if name.is_empty() {
            flaws.required(format!("{path}.name"), "");
        } else {
            for flaw in names::label(name, false) {
                flaws.invalid(format!("{path}.name"), name, &flaw);
            }
        }
        // Only volumes without flaws count as there.
        if seen.contains(name) {
            flaws.duplicate(format!("{path}.name"), name);
        } else if flaws.len() == before {
            seen.insert(name);
        }
    }
    seen
}

/// Looks at a container.
pub(super) fn check_container<'a>(
    container: &'a Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    seen: &mut BTreeSet<&'a str>,
    flaws: &mut FieldErrors,
) {
    let name = text(container, &["name"]);
    if name.is_empty() {
        flaws.required(format!("{path}.name"), "");
    } else {
        for flaw in names::label(name, false) {
            flaws.invalid(format!("{path}.name"), name, &flaw);
        }
        if !seen.insert(name) {
            flaws.duplicate(format!("{path}.name"), name);
        }
    }
    if text(container, &["image"]).is_empty() {
        flaws.required(format!("{path}.image"), "");
    }
    check_ports(container, path, flaws);
    check_mounts(container, path, volumes, flaws);
    let policy = text(container, &["imagePullPolicy"]);
    if !matches!(policy, "Always" | "IfNotPresent" | "Never") {
        flaws.unsupported(format!("{path}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
    check_resources(container, path, flaws);
}

fn check_mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, flaws: &mut FieldErrors) {
    let mut places = BTreeSet::new();
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        let (name, place) = (text(mount, &["name"]), text(mount, &["mountPath"]));
        if name.is_empty() {
            flaws.required(format!("{path}.volumeMounts[{index}].name"), "");
        }
        if !volumes.contains(name) {
            flaws.not_found(format!("{path}.volumeMounts[{index}].name"), name);
        }
        if place.is_empty() {
            flaws.required(format!("{path}.volumeMounts[{index}].mountPath"), "");
        }
        if !places.insert(place) {
            flaws.invalid(format!("{path}.volumeMounts[{index}].mountPath"), place, "must be unique");
        }
    }
}

fn check_ports(container: &Value, path: &str, flaws: &mut FieldErrors) {
    const RANGE: &str = "must be between 1 and 65535, inclusive";
    let mut seen = BTreeSet::new();
    for (index, port) in list(container, &["ports"]).iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let number = |field| at(port, &[field]).and_then(Value::as_i64).unwrap_or(0);
        let name = text(port, &["name"]);
        if !name.is_empty() && !seen.insert(name) {
            flaws.duplicate(format!("{path}.name"), name);
        }
        match number("containerPort") {
            0 => flaws.required(format!("{path}.containerPort"), ""),
            1..=65535 => {}
            other => flaws.invalid(format!("{path}.containerPort"), other, RANGE),
        }
        if !(0..=65535).contains(&number("hostPort")) {
            flaws.invalid(format!("{path}.hostPort"), number("hostPort"), RANGE);
        }
        let protocol = text(port, &["protocol"]);
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            flaws.unsupported(format!("{path}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        }
    }
}

/// Nothing is asked for beyond its limit.
fn check_resources(container: &Value, path: &str, flaws: &mut FieldErrors) {
    for (name, request) in entries(container, &["resources", "requests"]) {
        let limit = text(container, &["resources", "limits", name]);
        let request = request.as_str().unwrap_or_default();
        let amounts = (request.parse::<Quantity>(), limit.parse::<Quantity>());
        if let (Ok(asked), Ok(most)) = amounts
            && asked > most
        {
            let why = format!("must be less than or equal to {name} limit of {limit}");
            flaws.invalid(format!("{path}.resources.requests"), request, &why);
        }
    }
}

/// The template of a claim: only labels and annotations of its metadata, and a spec as claims have it.
fn check_template(template: &Value, path: &str, flaws: &mut FieldErrors) {
    for (name, _) in entries(template, &["metadata"]) {
        if !matches!(name, "annotations" | "labels") {
            flaws.forbidden(format!("{path}.metadata.{name}"), "cannot be set");
        }
    }
    let mut part = FieldErrors::default();
    check_claim_spec(template, &mut part);
    flaws.extend_within(path, part);
}
