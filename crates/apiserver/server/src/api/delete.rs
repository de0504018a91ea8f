//! Deleting objects, immediately or after their grace period and finalizers.

use super::update::is_deletable;
use super::write::{second, validate_dry_run};
use super::{Answer, AnswerBody, Api, Options, Request, RequestContext, Target, Verb, decoded, key_of, show};
use crate::codec;
use crate::field_errors::FieldErrors;
use crate::kinds::{self, Kind};
use crate::status::{Details, Status};
use crate::store::{self, Stored};
use crate::value::{at, list, set, take, text};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// `DeleteOptions`, from a body or from the query.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub propagation_policy: Option<String>,
    pub orphan_dependents: Option<bool>,
    pub preconditions: Option<Preconditions>,
    pub dry_run: Vec<String>,
}

/// Conditions on the object to be deleted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

/// A field, its Go type, and whether it accepts a value.
type OptionField = (&'static str, &'static str, fn(&Value) -> bool);

/// The fields of [`DeleteOptions`].
const FIELDS: [OptionField; 5] = [
    ("gracePeriodSeconds", "int64", Value::is_i64),
    ("preconditions", "v1.Preconditions", Value::is_object),
    ("orphanDependents", "bool", Value::is_boolean),
    ("propagationPolicy", "v1.DeletionPropagation", Value::is_string),
    ("dryRun", "[]string", Value::is_array),
];

impl DeleteOptions {
    fn of(request: &Request) -> Result<Self, Status> {
        let text = codec::json(&request.body)?;
        let options = if text.iter().all(u8::is_ascii_whitespace) {
            let query: &Options = &request.options;
            Self {
                grace_period_seconds: query.grace_period_seconds,
                propagation_policy: query.propagation_policy.clone(),
                orphan_dependents: query.orphan_dependents,
                preconditions: None,
                dry_run: query.dry_run.clone(),
            }
        } else {
            Self::read(&text).map_err(Status::bad_request)?
        };
        let mut errors = FieldErrors::default();
        match (&options.propagation_policy, options.orphan_dependents) {
            (Some(policy), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.invalid("propagationPolicy", policy.as_str(), why);
            }
            (Some(policy), None) if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") => {
                errors.unsupported(
                    "propagationPolicy",
                    policy.as_str(),
                    &["Foreground", "Background", "Orphan", "nil"],
                );
            }
            (Some(_) | None, _) => {}
        }
        validate_dry_run(&options.dry_run, &mut errors);
        errors.into_result_for("meta.k8s.io", "DeleteOptions", "")?;
        Ok(options)
    }

    /// Decodes a body; the error is the whole message.
    fn read(text: &[u8]) -> Result<Self, String> {
        let named = bindery_fields::decode::type_meta_only(text).map_err(|error| error.0)?;
        if !matches!(named.kind.as_str(), "" | "DeleteOptions") {
            let (kind, version) = (named.kind, named.api_version);
            let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
            return Err(format!("no kind {kind:?} is registered for version {version:?} {scheme}"));
        }
        let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        for (field, go_type, fits) in FIELDS {
            let given = match value.get(field) {
                None | Some(Value::Null) => continue,
                Some(value) if fits(value) => continue,
                Some(Value::Bool(_)) => "bool".to_owned(),
                Some(Value::Number(number)) => format!("number {number}"),
                Some(Value::String(_)) => "string".to_owned(),
                Some(Value::Array(_)) => "array".to_owned(),
                Some(Value::Object(_)) => "object".to_owned(),
            };
            let given = if go_type == "int64" { given } else { given.split(' ').next().unwrap_or_default().to_owned() };
            return Err(format!(
                "json: cannot unmarshal {given} into Go struct field DeleteOptions.{field} of type {go_type}"
            ));
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// The propagation policy, if one was requested.
    fn policy(&self) -> Option<&str> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(true)) => Some("Orphan"),
            (None, Some(false)) => Some("Background"),
            (None, None) => None,
        }
    }
}

impl Api {
    /// Deletes one object.
    pub(super) fn delete(&mut self, context: &RequestContext, request: &Request) -> Result<Answer, Status> {
        let options = DeleteOptions::of(request)?;
        let (target, dry_run) = (&request.target, !options.dry_run.is_empty());
        if !target.subresource.is_empty() {
            return Err(Status::not_allowed());
        }
        let (kind, name) = (target.kind, &target.name);
        if kind.bucket() == "namespaces" && matches!(name.as_str(), "default" | "kube-system" | "kube-public") {
            return Err(Status::forbidden(kind, name, "this namespace may not be deleted"));
        }
        let (object, gone) = self.remove(context.now, target, &options, dry_run)?;
        let body = if gone && !kind.behavior.shows_deleted {
            let details = Details {
                name: name.clone(),
                group: kind.group.to_owned(),
                kind: kind.plural.to_owned(),
                uid: object.uid.to_string(),
                ..Details::default()
            };
            AnswerBody::Status(Box::new(Status::success(Some(details))))
        } else {
            AnswerBody::Object(show(kind, &object.bytes))
        };
        let code = if !gone && options.orphan_dependents == Some(false) { 202 } else { 200 };
        Ok(Answer { code, body, warnings: Vec::new(), revision: self.store.revision() })
    }

    /// Deletes all selected objects, and returns them.
    pub(super) fn delete_collection(&mut self, context: &RequestContext, request: &Request) -> Result<Answer, Status> {
        let options = DeleteOptions::of(request)?;
        let mut answer = self.list(&Request { verb: Verb::List, ..request.clone() })?;
        let AnswerBody::List(list) = &mut answer.body else { return Err(Status::internal("expected a list")) };
        let mut items = Vec::with_capacity(list.items.len());
        for item in &list.items {
            let object: Value = serde_json::from_slice(item).map_err(Status::internal)?;
            let target = Target {
                namespace: text(&object, &["metadata", "namespace"]).to_owned(),
                name: text(&object, &["metadata", "name"]).to_owned(),
                ..request.target.clone()
            };
            match self.remove(context.now, &target, &options, !options.dry_run.is_empty()) {
                Ok(_) => items.push(item.clone()),
                Err(status) if status.code == Some(404) => {}
                Err(status) => return Err(status),
            }
        }
        list.items = items;
        answer.revision = self.store.revision();
        Ok(answer)
    }

    /// Deletes an object, or marks it for deletion. Returns the object, and whether it was removed.
    pub(super) fn remove(
        &mut self,
        now: Timestamp,
        target: &Target,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<(Arc<Stored>, bool), Status> {
        let kind = target.kind;
        let key = key_of(&target.namespace, &target.name);
        let live = self.store.get(kind.bucket(), &key).cloned();
        let live = live.ok_or_else(|| Status::not_found(kind, &target.name))?;
        validate_preconditions(kind, &target.name, &live, options.preconditions.as_ref())?;
        let old = decoded(&live);
        let mut new = old.clone();
        let decided = kind.bucket() == "namespaces" && at(&old, &["metadata", "deletionTimestamp"]).is_some();
        if kind.behavior.collected && !decided {
            set_propagation_finalizer(&mut new, options.policy());
        }
        let marked = mark(kind, &mut new, &old, options, now);
        let waits = at(&old, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0) > 0;
        if kind.bucket() == "pods" && !marked && waits {
            // A running grace period can be shortened, but nothing else can be changed.
            return Ok((live, false));
        }
        if is_deletable(kind.bucket(), &new) {
            // A pod is always marked first; other objects are removed directly.
            let graceful = kind.bucket() == "pods" && marked;
            if dry_run {
                let shown = if graceful { Arc::new(store::encode(&new, live.revision)) } else { live };
                return Ok((shown, true));
            }
            if graceful {
                self.commit(kind, &key, &new, now);
            }
            let last = if graceful { &new } else { &old };
            return Ok((self.commit_removal(kind, &key, last, now), true));
        }
        if new == old {
            return Ok((live, false));
        }
        if dry_run {
            return Ok((Arc::new(store::encode(&new, live.revision)), false));
        }
        Ok((self.commit(kind, &key, &new, now), false))
    }
}

fn validate_preconditions(
    kind: &Kind,
    name: &str,
    live: &Stored,
    wanted: Option<&Preconditions>,
) -> Result<(), Status> {
    let Some(wanted) = wanted else { return Ok(()) };
    if kind.bucket() == "namespaces" {
        return validate_namespace_preconditions(kind, name, live, wanted);
    }
    // Errors about a view name the group of the stored form.
    let group = if kind.behavior.view.is_some() { "" } else { kind.group };
    let reject = |why: String| {
        let qualified = if group.is_empty() { kind.kind.to_owned() } else { format!("{}.{group}", kind.kind) };
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {why}");
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.kind.to_owned(),
            ..Details::default()
        };
        Err(Status::failure(409, "Conflict", message).with(details))
    };
    if let Some(uid) = &wanted.uid
        && **uid != *live.uid
    {
        let why = "The object might have been deleted and then recreated";
        return reject(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). {why}",
            live.uid
        ));
    }
    if let Some(revision) = &wanted.resource_version
        && *revision != live.revision.to_string()
    {
        let why = format!(
            "does not match the ResourceVersion in record ({}). The object might have been modified",
            live.revision
        );
        return reject(format!("the ResourceVersion in the precondition ({revision}) {why}"));
    }
    Ok(())
}

/// Upstream has its own implementation for namespaces, with other messages.
fn validate_namespace_preconditions(
    kind: &Kind,
    name: &str,
    live: &Stored,
    wanted: &Preconditions,
) -> Result<(), Status> {
    let revision = live.revision.to_string();
    for (what, wanted, is) in
        [("UID", &wanted.uid, &*live.uid), ("ResourceVersion", &wanted.resource_version, &revision)]
    {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
            let why = format!("{what} in precondition: {wanted}, {what} in object meta: {is}");
            return Err(Status::conflict(kind, name, &format!("Precondition failed: {why}")));
        }
    }
    Ok(())
}

/// Stores the propagation policy as a finalizer for the garbage collector.
fn set_propagation_finalizer(object: &mut Value, policy: Option<&str>) {
    let Some(policy) = policy else { return };
    let load_or_create = list(object, &["metadata", "finalizers"]);
    let load_or_create =
        load_or_create.iter().filter(|name| !matches!(name.as_str(), Some("orphan" | "foregroundDeletion")));
    let mut finalizers: Vec<Value> = load_or_create.cloned().collect();
    match policy {
        "Orphan" => finalizers.push("orphan".into()),
        "Foreground" => finalizers.push("foregroundDeletion".into()),
        _ => {}
    }
    if finalizers.is_empty() {
        take(object, &["metadata", "finalizers"]);
    } else {
        set(object, &["metadata", "finalizers"], finalizers);
    }
}

/// Marks an object for deletion, now or after a grace period. Returns whether it changed the
/// object, which may have been marked before.
fn mark(kind: &Kind, new: &mut Value, old: &Value, options: &DeleteOptions, now: Timestamp) -> bool {
    const AT: [&str; 2] = ["metadata", "deletionTimestamp"];
    const GRACE: [&str; 2] = ["metadata", "deletionGracePeriodSeconds"];
    let grace = if kind.bucket() == "pods" { kinds::pod::grace_seconds(old, options.grace_period_seconds) } else { 0 };
    let marked = at(old, &AT).is_some();
    let before = at(old, &GRACE).and_then(Value::as_i64).unwrap_or(0);
    if marked && (grace >= before || (options.grace_period_seconds.is_none() && grace != 0)) {
        return false;
    }
    let after = |time: Timestamp, seconds: i64| {
        time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
    };
    let mut end = after(now, grace);
    if marked && let Ok(earlier) = text(old, &AT).parse::<Timestamp>() {
        // A shorter grace period counts from the first delete.
        end = after(earlier, grace.saturating_sub(before));
    }
    set(new, &AT, second(end));
    if kind.bucket() == "namespaces" {
        set(new, &["status", "phase"], "Terminating");
    } else {
        set(new, &GRACE, grace);
    }
    if !marked
        && let Some(generation) = at(old, &["metadata", "generation"]).and_then(Value::as_i64).filter(|one| *one > 0)
    {
        set(new, &["metadata", "generation"], generation + 1);
    }
    true
}
