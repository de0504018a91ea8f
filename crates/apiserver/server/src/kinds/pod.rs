//! Pod: what the volumes' side of a cluster needs of it.

use super::pod_parts::{check_container, check_volumes};
use super::{
    AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Selectable, Sight, Subresource, column, print,
    status_of, wide,
};
use super::{pod_defaults, pod_update};
use crate::api::second;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, list, set, set_default, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[
        Subresource { name: "binding", kind: ("", "v1", "Binding"), verbs: &["create"] },
        status_of("", "Pod"),
    ],
    columns: &[
        NAME,
        column("Ready", "How many containers are ready."),
        column("Status", "Its phase, or why it is not running."),
        column("Restarts", "How often its containers were restarted."),
        AGE,
        wide("IP", "Its address."),
        wide("Node", "Where it runs."),
        wide("Nominated Node", "Where it is to run once there is room."),
        wide("Readiness Gates", "How many of its own conditions hold."),
    ],
    cells,
    space: "pods",
    rules: &Pod,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let statuses = list(object, &["status", "containerStatuses"]);
    let ready = statuses.iter().filter(|one| at(one, &["ready"]) == Some(&Value::Bool(true))).count();
    let restarts: i64 = statuses.iter().filter_map(|one| at(one, &["restartCount"])?.as_i64()).sum();
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let gates = list(object, &["spec", "readinessGates"]);
    let holds = gates.iter().filter(|gate| {
        list(object, &["status", "conditions"])
            .iter()
            .any(|one| one.get("type") == gate.get("conditionType") && text(one, &["status"]) == "True")
    });
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{}/{}", holds.count(), gates.len()) };
    vec![
        print::name(object),
        format!("{ready}/{}", list(object, &["spec", "containers"]).len()).into(),
        shown_status(object).into(),
        restarts.to_string().into(),
        print::age(object, sight),
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

/// How many seconds a pod that is deleted is given.
pub(crate) fn grace_seconds(pod: &Value, asked: Option<i64>) -> i64 {
    let unscheduled = text(pod, &["spec", "nodeName"]).is_empty();
    if unscheduled || matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return 0;
    }
    let own = at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    match asked.or(own).unwrap_or(30) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

#[derive(Debug)]
struct Pod;

impl Rules for Pod {
    fn fill_in(&self, object: &mut Value) {
        pod_defaults::fill_in(object);
    }

    fn admit(&self, object: &mut Value, _scene: &Scene<'_>) -> Result<(), Status> {
        let Some(priority) = pod_defaults::priority(object) else {
            let why = format!("no PriorityClass with name {} was found", text(object, &["spec", "priorityClassName"]));
            return Err(Status::forbidden(&KIND, text(object, &["metadata", "name"]), &why));
        };
        set(object, &["spec", "priority"], priority);
        set_default(object, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
        pod_defaults::tolerate(object);
        Ok(())
    }

    fn prepare(&self, object: &mut Value, scene: &Scene<'_>) {
        set(object, &["metadata", "generation"], 1);
        let mut status = json!({"phase": "Pending", "qosClass": pod_defaults::quality(object)});
        if !list(object, &["spec", "schedulingGates"]).is_empty() {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message,
                "lastProbeTime": null, "lastTransitionTime": second(scene.now),
            }]);
        }
        set(object, &["status"], status);
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        if scene.subresource == "status" {
            copy(old, new, &["spec"]);
            copy(old, new, &["metadata", "deletionTimestamp"]);
            copy(old, new, &["metadata", "ownerReferences"]);
            if at(new, &["status", "qosClass"]).is_none() {
                copy(old, new, &["status", "qosClass"]);
            }
        } else {
            copy(old, new, &["status"]);
            pod_defaults::tolerate(new);
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

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let volumes = check_volumes(object, flaws);
        if list(object, &["spec", "containers"]).is_empty() {
            flaws.required("spec.containers", "");
        }
        let mut seen = BTreeSet::new();
        for part in ["containers", "initContainers"] {
            for (index, container) in list(object, &["spec", part]).iter().enumerate() {
                check_container(container, &format!("spec.{part}[{index}]"), &volumes, &mut seen, flaws);
            }
        }
        if let Some(deadline) = at(object, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64)
            && !(1..=i64::from(i32::MAX)).contains(&deadline)
        {
            let why = "must be between 1 and 2147483647, inclusive";
            flaws.invalid("spec.activeDeadlineSeconds", deadline, why);
        }
        let policy = text(object, &["spec", "restartPolicy"]);
        if !matches!(policy, "Always" | "OnFailure" | "Never") {
            flaws.unsupported("spec.restartPolicy", policy, &["Always", "OnFailure", "Never"]);
        }
        let policy = text(object, &["spec", "dnsPolicy"]);
        let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
        if !policies.contains(&policy) {
            flaws.unsupported("spec.dnsPolicy", policy, &policies);
        }
        for (field, what) in [("nodeName", "nodeName"), ("serviceAccountName", "serviceAccountName")] {
            let name = text(object, &["spec", field]);
            for flaw in if name.is_empty() { Vec::new() } else { names::subdomain(name, false) } {
                flaws.invalid(format!("spec.{what}"), name, &flaw);
            }
        }
        if let Some(required) =
            at(object, &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])
        {
            let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
            super::affinity::check_node_selector(required, path, flaws);
        }
    }

    fn care(&self) -> Care {
        Care::Both
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        if scene.subresource == "status" {
            if text(new, &["spec", "nodeName"]) != text(old, &["spec", "nodeName"]) {
                flaws.forbidden("status.nodeName", "may not be changed directly");
            }
            let quality = text(new, &["status", "qosClass"]);
            if quality != text(old, &["status", "qosClass"]) {
                flaws.invalid("status.qosClass", quality, "field is immutable");
            }
            return;
        }
        self.check(new, scene, flaws);
        pod_update::check(new, old, flaws);
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

    fn selectable(&self) -> &'static [Selectable] {
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
