//! Updates of a pod's spec, most of which is immutable.

use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::value::{at, copy, list, take, text};
use serde_json::Value;

const FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
     `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
     (allow it to be set to 1 if it was previously negative)";

/// Validates an update of the spec.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for part in ["containers", "initContainers"] {
        let containers = list(new, &["spec", part]);
        for (index, container) in containers.iter().enumerate() {
            if text(container, &["image"]).is_empty() && containers.len() == list(old, &["spec", part]).len() {
                errors.required(format!("spec.{part}[{index}].image"), "");
            }
        }
        if containers.len() != list(old, &["spec", part]).len() {
            errors.forbidden(format!("spec.{part}"), "pod updates may not add or remove containers");
            return;
        }
    }
    if !validate_deadline(new, old, errors) {
        return;
    }
    validate_tolerations(new, old, errors);
    if at(new, &["spec"]) == at(old, &["spec"]) {
        return;
    }
    let expected = at(old, &["spec"]).cloned().unwrap_or_default();
    let found = with_mutable_fields_restored(new, old);
    if found != expected {
        let diff = go_diff::diff(&go_diff::pod_spec(&expected), &go_diff::pod_spec(&found));
        errors.forbidden("spec", &format!("{FIELDS}\n{diff}"));
    }
}

/// The new spec, with the old values of the fields that may change.
fn with_mutable_fields_restored(new: &Value, old: &Value) -> Value {
    let mut pod = new.clone();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        copy(old, &mut pod, &["spec", field]);
    }
    for part in ["containers", "initContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{part}")).and_then(Value::as_array_mut);
        for (container, was) in containers.into_iter().flatten().zip(list(old, &["spec", part])) {
            copy(was, container, &["image"]);
        }
    }
    take(&mut pod, &["spec"]).unwrap_or_default()
}

/// The deadline can only be shortened. Returns whether to validate the rest.
fn validate_deadline(new: &Value, old: &Value, errors: &mut FieldErrors) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let deadline = |pod| at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    match (deadline(old), deadline(new)) {
        (_, Some(is)) if !(0..=i64::from(i32::MAX)).contains(&is) => {
            errors.invalid(PATH, is, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(was), Some(is)) if is > was => {
            errors.invalid(PATH, is, "must be less than or equal to previous value");
            false
        }
        (Some(_), None) => {
            errors.invalid(PATH, Value::Null, "must not update from a positive integer to nil value");
            true
        }
        (_, _) => true,
    }
}

/// Tolerations can only be added.
fn validate_tolerations(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let lasting = |toleration: &Value| {
        let mut toleration = toleration.clone();
        take(&mut toleration, &["tolerationSeconds"]);
        toleration
    };
    let now: Vec<Value> = list(new, &["spec", "tolerations"]).iter().map(lasting).collect();
    if !list(old, &["spec", "tolerations"]).iter().all(|one| now.contains(&lasting(one))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden("spec.tolerations", why);
    }
}
