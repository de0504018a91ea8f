//! What of a pod's spec may change, which is little.

use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::value::{at, copy, list, take, text};
use serde_json::Value;

const FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
     `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
     (allow it to be set to 1 if it was previously negative)";

/// Looks for changes of a spec that may not be.
pub(super) fn check(new: &Value, old: &Value, flaws: &mut FieldErrors) {
    for part in ["containers", "initContainers"] {
        let containers = list(new, &["spec", part]);
        for (index, container) in containers.iter().enumerate() {
            if text(container, &["image"]).is_empty() && containers.len() == list(old, &["spec", part]).len() {
                flaws.required(format!("spec.{part}[{index}].image"), "");
            }
        }
        if containers.len() != list(old, &["spec", part]).len() {
            flaws.forbidden(format!("spec.{part}"), "pod updates may not add or remove containers");
            return;
        }
    }
    if !check_deadline(new, old, flaws) {
        return;
    }
    check_tolerations(new, old, flaws);
    if at(new, &["spec"]) == at(old, &["spec"]) {
        return;
    }
    let expected = at(old, &["spec"]).cloned().unwrap_or_default();
    let found = with_what_may_change_as_it_was(new, old);
    if found != expected {
        let diff = go_diff::diff(&go_diff::pod_spec(&expected), &go_diff::pod_spec(&found));
        flaws.forbidden("spec", &format!("{FIELDS}\n{diff}"));
    }
}

/// The new spec, but for images, the deadline, tolerations and gates: those are taken as checked.
fn with_what_may_change_as_it_was(new: &Value, old: &Value) -> Value {
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

/// A deadline can only come nearer. Answers whether the rest is to be looked at.
fn check_deadline(new: &Value, old: &Value, flaws: &mut FieldErrors) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let deadline = |pod| at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    match (deadline(old), deadline(new)) {
        (_, Some(is)) if !(0..=i64::from(i32::MAX)).contains(&is) => {
            flaws.invalid(PATH, is, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(was), Some(is)) if is > was => {
            flaws.invalid(PATH, is, "must be less than or equal to previous value");
            false
        }
        (Some(_), None) => {
            flaws.invalid(PATH, Value::Null, "must not update from a positive integer to nil value");
            true
        }
        (_, _) => true,
    }
}

/// Tolerations can only become more.
fn check_tolerations(new: &Value, old: &Value, flaws: &mut FieldErrors) {
    let lasting = |toleration: &Value| {
        let mut toleration = toleration.clone();
        take(&mut toleration, &["tolerationSeconds"]);
        toleration
    };
    let now: Vec<Value> = list(new, &["spec", "tolerations"]).iter().map(lasting).collect();
    if !list(old, &["spec", "tolerations"]).iter().all(|one| now.contains(&lasting(one))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        flaws.forbidden("spec.tolerations", why);
    }
}
