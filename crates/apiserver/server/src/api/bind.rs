//! `pods/binding`: how a scheduler says on which node a pod runs.

use super::call::Call;
use super::{Answer, Api, Done, decoded, key_of};
use crate::status::Status;
use crate::structure;
use crate::value::{at, entries, list, set, take, text};
use serde_json::{Value, json};

impl Api {
    /// Binds the pod that the path names; or, at the old place for bindings, the one that the binding names.
    pub(super) fn bind_pod(&mut self, call: &mut Call<'_>) -> Result<Answer, Status> {
        let (target, body) = (&call.request.target, structure::json(&call.request.body)?);
        let binding: Value = serde_json::from_slice(&body).map_err(|flaw| Status::bad_request(flaw.to_string()))?;
        let name = text(&binding, &["metadata", "name"]);
        if !target.name.is_empty() && target.name != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let node = node_of(&binding)?;
        let key = key_of(&target.namespace, name);
        let live = self.store.get(call.kind.space, &key).cloned();
        let live = live.ok_or_else(|| Status::not_found(call.kind, name))?;
        let uid = text(&binding, &["metadata", "uid"]);
        if !uid.is_empty() && uid != &*live.uid {
            return Err(call.other_object(name, uid, &live.uid));
        }
        let (version, live_version) = (text(&binding, &["metadata", "resourceVersion"]), live.revision.to_string());
        if !version.is_empty() && version != live_version {
            return Err(call.unmet(name, "ResourceVersion", version, &live_version));
        }
        let mut pod = decoded(&live);
        if let Some(why) = why_not(&pod, name) {
            let mut status = Status::conflict(call.kind, name, &why);
            status.message = status.message.replacen("pods ", "pods/binding ", 1);
            if let Some(details) = &mut status.details {
                details.kind = "pods/binding".to_owned();
            }
            return Err(status);
        }
        assign(&mut pod, node, &binding, call.now_text());
        if !call.dry_run {
            self.commit(call.kind, &key, &pod, call.now);
        }
        let revision = self.store.revision();
        let mut success = Status::success(None);
        success.code = Some(201);
        Ok(call.answer(201, Done::Status(Box::new(success)), revision))
    }
}

/// The node that a binding names.
fn node_of(binding: &Value) -> Result<&str, Status> {
    let (node, kind) = (text(binding, &["target", "name"]), text(binding, &["target", "kind"]));
    let mut flaws = crate::invalid::FieldErrors::default();
    if !matches!(kind, "" | "Node") {
        flaws.unsupported("target.kind", kind, &["Node", "<empty>"]);
    }
    if node.is_empty() {
        flaws.required("target.name", "");
    }
    // Upstream answers with the bare list of flaws, which is no refusal to its own layers, but a failure.
    if flaws.is_empty() { Ok(node) } else { Err(Status::failure(500, "", flaws.text())) }
}

/// Why a pod cannot be bound as it is.
fn why_not(pod: &Value, name: &str) -> Option<String> {
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
    // Where it was to go is of no interest any more.
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
