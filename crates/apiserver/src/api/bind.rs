//! `pods/binding`: how a scheduler says on which node a pod runs.

use super::call::Call;
use super::{Answer, Api, Done, decoded, key_of};
use crate::status::Status;
use crate::structure;
use crate::value::{at, entries, list, set, text};
use serde_json::{Value, json};

impl Api {
    pub(super) fn bind_pod(&mut self, call: &mut Call<'_>) -> Result<Answer, Status> {
        let (target, body) = (&call.request.target, structure::json(&call.request.body)?);
        let binding: Value = serde_json::from_slice(&body).map_err(|flaw| Status::bad_request(flaw.to_string()))?;
        let node = text(&binding, &["target", "name"]);
        let said = text(&binding, &["target", "kind"]);
        let mut flaws = crate::invalid::Flaws::default();
        if !matches!(said, "" | "Node") {
            flaws.unsupported("target.kind", said, &["Node", "<empty>"]);
        }
        if node.is_empty() {
            flaws.required("target.name", "");
        }
        if !flaws.is_empty() {
            return Err(Status::failure(500, "", flaws.text()));
        }
        let key = key_of(&target.namespace, &target.name);
        let live = self.store.get(call.kind.space, &key).cloned();
        let live = live.ok_or_else(|| Status::not_found(call.kind, &target.name))?;
        let old = decoded(&live);
        let refuse = |why: String| {
            let mut status = Status::conflict(call.kind, &target.name, &why);
            status.message = status.message.replacen("pods ", "pods/binding ", 1);
            if let Some(details) = &mut status.details {
                details.kind = "pods/binding".to_owned();
            }
            Err(status)
        };
        let uid = text(&binding, &["metadata", "uid"]);
        if !uid.is_empty() && uid != &*live.uid {
            return refuse(format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                live.uid
            ));
        }
        if at(&old, &["metadata", "deletionTimestamp"]).is_some() {
            return refuse(format!("pod {} is being deleted, cannot be assigned to a host", target.name));
        }
        let assigned = text(&old, &["spec", "nodeName"]);
        if !assigned.is_empty() {
            return refuse(format!("pod {} is already assigned to node {assigned:?}", target.name));
        }
        let mut new = old.clone();
        set(&mut new, &["spec", "nodeName"], node);
        for (name, value) in entries(&binding, &["metadata", "annotations"]) {
            set(&mut new, &["metadata", "annotations", name], value.clone());
        }
        let now = call.now_text();
        let mut conditions = list(&old, &["status", "conditions"]).to_vec();
        conditions.retain(|condition| text(condition, &["type"]) != "PodScheduled");
        conditions
            .push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
        set(&mut new, &["status", "conditions"], conditions);
        if !call.dry_run {
            self.commit(call.kind, &key, &new, call.now);
        }
        let revision = self.store.revision();
        let mut success = Status::success(None);
        success.code = Some(201);
        Ok(call.answer(201, Done::Status(Box::new(success)), revision))
    }
}
