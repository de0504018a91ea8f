//! `pods/binding`: a scheduler assigns a pod to a node.

use super::write::Write;
use super::{Answer, AnswerBody, Api, decoded, key_of};
use crate::codec;
use crate::status::Status;
use crate::value::{at, entries, list, set, take, text};
use serde_json::{Value, json};

impl Api {
    /// Binds the pod of the path or, at the legacy path `bindings`, the pod that the binding names.
    pub(super) fn bind_pod(&mut self, write: &mut Write<'_>) -> Result<Answer, Status> {
        let (target, body) = (&write.request.target, codec::json(&write.request.body)?);
        let binding: Value = serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
        let name = text(&binding, &["metadata", "name"]);
        if !target.name.is_empty() && target.name != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let node = node_of(&binding)?;
        let key = key_of(&target.namespace, name);
        let live = self.store.get(write.kind.bucket(), &key).cloned();
        let live = live.ok_or_else(|| Status::not_found(write.kind, name))?;
        let uid = text(&binding, &["metadata", "uid"]);
        if !uid.is_empty() && uid != &*live.uid {
            return Err(write.uid_conflict(name, uid, &live.uid));
        }
        let (version, live_version) = (text(&binding, &["metadata", "resourceVersion"]), live.revision.to_string());
        if !version.is_empty() && version != live_version {
            return Err(write.precondition_failed(name, "ResourceVersion", version, &live_version));
        }
        let mut pod = decoded(&live);
        if let Some(why) = binding_conflict(&pod, name) {
            let mut status = Status::conflict(write.kind, name, &why);
            status.message = status.message.replacen("pods ", "pods/binding ", 1);
            if let Some(details) = &mut status.details {
                details.kind = "pods/binding".to_owned();
            }
            return Err(status);
        }
        assign(&mut pod, node, &binding, write.now_text());
        if !write.dry_run {
            self.commit_update(write.kind, &key, &pod, write.now)?;
        }
        let revision = self.store.revision();
        let mut success = Status::success(None);
        success.code = Some(201);
        Ok(write.answer(201, AnswerBody::Status(Box::new(success)), revision))
    }
}

/// The node that a binding names.
fn node_of(binding: &Value) -> Result<&str, Status> {
    let (node, kind) = (text(binding, &["target", "name"]), text(binding, &["target", "kind"]));
    let mut errors = crate::field_errors::FieldErrors::default();
    if !matches!(kind, "" | "Node") {
        errors.unsupported("target.kind", kind, &["Node", "<empty>"]);
    }
    if node.is_empty() {
        errors.required("target.name", "");
    }
    // Upstream returns these errors without a status, so they become a 500.
    if errors.is_empty() { Ok(node) } else { Err(Status::failure(500, "", errors.text())) }
}

/// Why a pod cannot be bound.
fn binding_conflict(pod: &Value, name: &str) -> Option<String> {
    if at(pod, &["metadata", "deletionTimestamp"]).is_some() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let assigned = text(pod, &["spec", "nodeName"]);
    if !assigned.is_empty() {
        return Some(format!("pod {name} is already assigned to node {assigned:?}"));
    }
    let gated = !list(pod, &["spec", "schedulingGates"]).is_empty();
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

fn assign(pod: &mut Value, node: &str, binding: &Value, now: String) {
    set(pod, &["spec", "nodeName"], node);
    // The nomination has served its purpose.
    take(pod, &["status", "nominatedNodeName"]);
    for notes in ["annotations", "labels"] {
        for (name, value) in entries(binding, &["metadata", notes]) {
            set(pod, &["metadata", notes, name], value.clone());
        }
    }
    let mut conditions = list(pod, &["status", "conditions"]).to_vec();
    conditions.retain(|condition| text(condition, &["type"]) != "PodScheduled");
    conditions
        .push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    set(pod, &["status", "conditions"], conditions);
}
