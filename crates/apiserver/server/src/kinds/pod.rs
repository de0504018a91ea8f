//! Pod, as far as volumes and scheduling need it.

use super::pod_validation::{validate_container, validate_volumes};
use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Selectable, Strategy, Subresource,
    WriteContext, column, print, status_of, wide,
};
use super::{pod_defaults, pod_update};
use crate::api::second;
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, list, set, set_if_empty, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) static KIND: Kind = Kind {
    kind: "Pod",
    plural: "pods",
    short_names: &["po"],
    categories: &["all"],
    namespaced: true,
    subresources: &[
        Subresource { name: "binding", kind: ("", "v1", "Binding"), verbs: &["create"] },
        status_of("", "Pod"),
    ],
    columns: &[
        NAME,
        column("Ready", "The number of ready containers."),
        column("Status", "The phase, or why the pod is not running."),
        column("Restarts", "How often containers were restarted."),
        AGE,
        wide("IP", "The address of the pod."),
        wide("Node", "The node of the pod."),
        wide("Nominated Node", "The node that the scheduler has nominated."),
        wide("Readiness Gates", "The number of readiness gates that are True."),
    ],
    cells,
    strategy: &Pod,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let statuses = list(object, &["status", "containerStatuses"]);
    let ready = statuses.iter().filter(|one| at(one, &["ready"]) == Some(&Value::Bool(true))).count();
    let restarts: i64 = statuses.iter().filter_map(|one| at(one, &["restartCount"])?.as_i64()).sum();
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let gates = list(object, &["spec", "readinessGates"]);
    let passed = gates.iter().filter(|gate| {
        list(object, &["status", "conditions"])
            .iter()
            .any(|one| one.get("type") == gate.get("conditionType") && text(one, &["status"]) == "True")
    });
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{}/{}", passed.count(), gates.len()) };
    vec![
        print::name(object),
        format!("{ready}/{}", list(object, &["spec", "containers"]).len()).into(),
        shown_status(object).into(),
        restarts.to_string().into(),
        print::age(object, context),
        or_none(text(object, &["status", "podIP"])).into(),
        or_none(text(object, &["spec", "nodeName"])).into(),
        or_none(text(object, &["status", "nominatedNodeName"])).into(),
        gates.into(),
    ]
}

fn shown_status(object: &Value) -> &str {
    if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        return "Terminating";
    }
    let waiting = list(object, &["status", "containerStatuses"]).iter().rev().find_map(|one| {
        let reason = |state| Some(text(one, &["state", state, "reason"])).filter(|reason| !reason.is_empty());
        reason("waiting").or(reason("terminated"))
    });
    let gated = list(object, &["status", "conditions"])
        .iter()
        .any(|one| text(one, &["type"]) == "PodScheduled" && text(one, &["reason"]) == "SchedulingGated");
    match (waiting, text(object, &["status", "reason"])) {
        (Some(waiting), _) => waiting,
        (None, "") if gated => "SchedulingGated",
        (None, "") => text(object, &["status", "phase"]),
        (None, reason) => reason,
    }
}

/// The grace period of a deleted pod, in seconds.
pub(crate) fn grace_seconds(pod: &Value, requested: Option<i64>) -> i64 {
    let unscheduled = text(pod, &["spec", "nodeName"]).is_empty();
    if unscheduled || matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return 0;
    }
    let own = at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    match requested.or(own).unwrap_or(30) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

#[derive(Debug)]
struct Pod;

impl Strategy for Pod {
    fn set_defaults(&self, object: &mut Value) {
        pod_defaults::set_defaults(object);
    }

    fn admit(&self, object: &mut Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        let Some(priority) = pod_defaults::priority(object) else {
            let why = format!("no PriorityClass with name {} was found", text(object, &["spec", "priorityClassName"]));
            return Err(Status::forbidden(&KIND, text(object, &["metadata", "name"]), &why));
        };
        set(object, &["spec", "priority"], priority);
        set_if_empty(object, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
        pod_defaults::add_default_tolerations(object);
        Ok(())
    }

    fn prepare_for_create(&self, object: &mut Value, context: &WriteContext<'_>) {
        set(object, &["metadata", "generation"], 1);
        let mut status = json!({"phase": "Pending", "qosClass": pod_defaults::qos_class(object)});
        if !list(object, &["spec", "schedulingGates"]).is_empty() {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message,
                "lastProbeTime": null, "lastTransitionTime": second(context.now),
            }]);
        }
        set(object, &["status"], status);
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        if context.subresource == "status" {
            copy(old, new, &["spec"]);
            copy(old, new, &["metadata", "deletionTimestamp"]);
            copy(old, new, &["metadata", "ownerReferences"]);
            if at(new, &["status", "qosClass"]).is_none() {
                copy(old, new, &["status", "qosClass"]);
            }
        } else {
            copy(old, new, &["status"]);
            pod_defaults::add_default_tolerations(new);
            for given in ["priority", "preemptionPolicy"] {
                if at(new, &["spec", given]).is_none() {
                    copy(old, new, &["spec", given]);
                }
            }
            if at(new, &["spec"]) != at(old, &["spec"]) {
                let generation = at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
                set(new, &["metadata", "generation"], generation + 1);
            }
        }
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let volumes = validate_volumes(object, errors);
        if list(object, &["spec", "containers"]).is_empty() {
            errors.required("spec.containers", "");
        }
        let mut seen = BTreeSet::new();
        for part in ["containers", "initContainers"] {
            for (index, container) in list(object, &["spec", part]).iter().enumerate() {
                validate_container(container, &format!("spec.{part}[{index}]"), &volumes, &mut seen, errors);
            }
        }
        if let Some(deadline) = at(object, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64)
            && !(1..=i64::from(i32::MAX)).contains(&deadline)
        {
            let why = "must be between 1 and 2147483647, inclusive";
            errors.invalid("spec.activeDeadlineSeconds", deadline, why);
        }
        let policy = text(object, &["spec", "restartPolicy"]);
        if !matches!(policy, "Always" | "OnFailure" | "Never") {
            errors.unsupported("spec.restartPolicy", policy, &["Always", "OnFailure", "Never"]);
        }
        let policy = text(object, &["spec", "dnsPolicy"]);
        let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
        if !policies.contains(&policy) {
            errors.unsupported("spec.dnsPolicy", policy, &policies);
        }
        for (field, what) in [("nodeName", "nodeName"), ("serviceAccountName", "serviceAccountName")] {
            let name = text(object, &["spec", field]);
            for error in if name.is_empty() { Vec::new() } else { names::subdomain(name, false) } {
                errors.invalid(format!("spec.{what}"), name, &error);
            }
        }
        if let Some(required) =
            at(object, &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])
        {
            let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
            super::selectors::validate_node_selector(required, path, errors);
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::UpdateAndCreate
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        if context.subresource == "status" {
            if text(new, &["spec", "nodeName"]) != text(old, &["spec", "nodeName"]) {
                errors.forbidden("status.nodeName", "may not be changed directly");
            }
            let qos_class = text(new, &["status", "qosClass"]);
            if qos_class != text(old, &["status", "qosClass"]) {
                errors.invalid("status.qosClass", qos_class, "field is immutable");
            }
            return;
        }
        self.validate(new, context, errors);
        pod_update::validate(new, old, errors);
    }

    fn row_conditions(&self, pod: &Value) -> Option<Value> {
        let message = match text(pod, &["status", "phase"]) {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return None,
        };
        let reason = text(pod, &["status", "phase"]);
        Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
        &[
            ("spec.nodeName", |pod| text(pod, &["spec", "nodeName"]).to_owned()),
            ("spec.restartPolicy", |pod| text(pod, &["spec", "restartPolicy"]).to_owned()),
            ("spec.schedulerName", |pod| text(pod, &["spec", "schedulerName"]).to_owned()),
            ("spec.serviceAccountName", |pod| text(pod, &["spec", "serviceAccountName"]).to_owned()),
            ("spec.hostNetwork", |pod| (at(pod, &["spec", "hostNetwork"]) == Some(&Value::Bool(true))).to_string()),
            ("status.phase", |pod| text(pod, &["status", "phase"]).to_owned()),
            ("status.podIP", |pod| text(pod, &["status", "podIP"]).to_owned()),
            ("status.podIPs", |pod| text(pod, &["status", "podIP"]).to_owned()),
            ("status.nominatedNodeName", |pod| text(pod, &["status", "nominatedNodeName"]).to_owned()),
        ]
    }
}
