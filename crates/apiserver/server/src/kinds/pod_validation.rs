//! Validation of a pod's volumes and containers.

use super::persistent_volume_claim::validate_claim_spec;
use crate::field_errors::FieldErrors;
use crate::names;
use crate::value::{at, entries, list, map, text};
use bindery_model::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;

/// Validates the volumes; returns their names.
pub(super) fn validate_volumes<'a>(object: &'a Value, errors: &mut FieldErrors) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in list(object, &["spec", "volumes"]).iter().enumerate() {
        let path = format!("spec.volumes[{index}]");
        let (name, before) = (text(volume, &["name"]), errors.len());
        let sources: Vec<&String> =
            map(volume, &[]).into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "name").collect();
        for extra in sources.iter().skip(1) {
            errors.forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type");
        }
        if at(volume, &["persistentVolumeClaim"]).is_some()
            && text(volume, &["persistentVolumeClaim", "claimName"]).is_empty()
        {
            errors.required(format!("{path}.persistentVolumeClaim.claimName"), "");
        }
        let path_of_template = format!("{path}.ephemeral.volumeClaimTemplate");
        match (at(volume, &["ephemeral"]), at(volume, &["ephemeral", "volumeClaimTemplate"])) {
            (Some(_), None) => errors.required(path_of_template, ""),
            (Some(_), Some(template)) => validate_template(template, &path_of_template, errors),
            (None, _) => {}
        }
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else {
            for error in names::label(name, false) {
                errors.invalid(format!("{path}.name"), name, &error);
            }
        }
        // Mounts can only refer to valid volumes.
        if seen.contains(name) {
            errors.duplicate(format!("{path}.name"), name);
        } else if errors.len() == before {
            seen.insert(name);
        }
    }
    seen
}

/// Validates a container.
pub(super) fn validate_container<'a>(
    container: &'a Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut FieldErrors,
) {
    let name = text(container, &["name"]);
    if name.is_empty() {
        errors.required(format!("{path}.name"), "");
    } else {
        for error in names::label(name, false) {
            errors.invalid(format!("{path}.name"), name, &error);
        }
        if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
    }
    if text(container, &["image"]).is_empty() {
        errors.required(format!("{path}.image"), "");
    }
    validate_ports(container, path, errors);
    validate_mounts(container, path, volumes, errors);
    let policy = text(container, &["imagePullPolicy"]);
    if !matches!(policy, "Always" | "IfNotPresent" | "Never") {
        errors.unsupported(format!("{path}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
    validate_resources(container, path, errors);
}

fn validate_mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let mut mount_paths = BTreeSet::new();
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        let (name, position) = (text(mount, &["name"]), text(mount, &["mountPath"]));
        if name.is_empty() {
            errors.required(format!("{path}.volumeMounts[{index}].name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(format!("{path}.volumeMounts[{index}].name"), name);
        }
        if position.is_empty() {
            errors.required(format!("{path}.volumeMounts[{index}].mountPath"), "");
        }
        if !mount_paths.insert(position) {
            errors.invalid(format!("{path}.volumeMounts[{index}].mountPath"), position, "must be unique");
        }
    }
}

fn validate_ports(container: &Value, path: &str, errors: &mut FieldErrors) {
    const RANGE: &str = "must be between 1 and 65535, inclusive";
    let mut seen = BTreeSet::new();
    for (index, port) in list(container, &["ports"]).iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let number = |field| at(port, &[field]).and_then(Value::as_i64).unwrap_or(0);
        let name = text(port, &["name"]);
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        match number("containerPort") {
            0 => errors.required(format!("{path}.containerPort"), ""),
            1..=65535 => {}
            other => errors.invalid(format!("{path}.containerPort"), other, RANGE),
        }
        if !(0..=65535).contains(&number("hostPort")) {
            errors.invalid(format!("{path}.hostPort"), number("hostPort"), RANGE);
        }
        let protocol = text(port, &["protocol"]);
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            errors.unsupported(format!("{path}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        }
    }
}

/// Requests must not exceed limits.
fn validate_resources(container: &Value, path: &str, errors: &mut FieldErrors) {
    for (name, request) in entries(container, &["resources", "requests"]) {
        let limit = text(container, &["resources", "limits", name]);
        let request = request.as_str().unwrap_or_default();
        let amounts = (request.parse::<Quantity>(), limit.parse::<Quantity>());
        if let (Ok(requested), Ok(max)) = amounts
            && requested > max
        {
            let why = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(format!("{path}.resources.requests"), request, &why);
        }
    }
}

/// Validates a claim template: only labels and annotations in its metadata, and a claim's spec.
fn validate_template(template: &Value, path: &str, errors: &mut FieldErrors) {
    for (name, _) in entries(template, &["metadata"]) {
        if !matches!(name, "annotations" | "labels") {
            errors.forbidden(format!("{path}.metadata.{name}"), "cannot be set");
        }
    }
    let mut part = FieldErrors::default();
    validate_claim_spec(template, &mut part);
    errors.extend_within(path, part);
}
