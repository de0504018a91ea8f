//! Server-side apply.

use serde_json::Value;

use super::entries::{self, Entry, Operation};
use super::{ApplyError, Conflict, UNOWNED, Writer, check, reset, restore_times_if_unchanged, updated, walk};
use crate::{FieldSet, Schema, Strictness, canonical};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Applies `applied`, a decoded patch that is not in canonical form. The result is in canonical
/// form and has its managedFields; it still needs defaults and everything else that an update gets,
/// except `track_update`. `live` is `None` if this creates the object.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    writer: &Writer<'_>,
) -> Result<Value, ApplyError> {
    check_type(schema, applied)?;
    check::typed(schema, applied).map_err(|error| {
        ApplyError::Internal(format!("failed to create typed patch object ({}): {error}", named(schema, applied)))
    })?;
    let before = live;
    let mut live = live.unwrap_or_else(|| schema.empty()).clone();
    let known = entries::read(entries::take(&mut live)).ok_or_else(|| {
        ApplyError::Internal("failed to decode managed fields: operation must be `Apply` or `Update`".to_owned())
    })?;
    let known = if known.is_empty() {
        let first = Writer { manager: "before-first-apply", ..*writer };
        updated(schema, schema.empty(), &live, known, &first)
    } else {
        known
    };
    let outcome = match merged(schema, &live, applied, known.clone(), force, writer) {
        Err(ApplyError::Conflicts(conflicts)) if writer.manager == "kubectl" => {
            // kubectl may take over fields that it applied client-side.
            let left = not_client_side_applied(schema, &live, conflicts);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            merged(schema, &live, applied, known, true, writer)?
        }
        outcome => outcome?,
    };
    let (value, tracked) = outcome;
    let decoded = canonical(schema, value, Strictness::Ignore).map_err(|error| {
        let (named, kind) = (named(schema, applied), gvk(schema.group, schema.version, schema.kind));
        ApplyError::Internal(format!(
            "failed to convert new object ({named}) to proper version: unable to convert unstructured object to {kind}: {error}"
        ))
    })?;
    let mut value = decoded.value;
    if writer.manager == "kubectl" {
        update_last_applied(&mut value, applied);
    }
    entries::write(&mut value, tracked);
    if let Some(before) = before {
        restore_times_if_unchanged(before, &mut value);
    }
    Ok(value)
}

fn gvk(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}, Kind={kind}")
}

fn named(schema: &Schema, applied: &Value) -> String {
    let meta = |name: &str| {
        applied.get("metadata").and_then(|meta| meta.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    format!("{}/{}; {}", meta("namespace"), meta("name"), gvk(schema.group, schema.version, schema.kind))
}

fn check_type(schema: &Schema, applied: &Value) -> Result<(), ApplyError> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if (group, version, kind) != (schema.group, schema.version, schema.kind) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk(group, version, kind))));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|list| !list.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// The object with the patch merged into it, and its new managedFields.
fn merged(
    schema: &Schema,
    live: &Value,
    applied: &Value,
    mut known: Vec<Entry>,
    force: bool,
    writer: &Writer<'_>,
) -> Result<(Value, Vec<Entry>), ApplyError> {
    let shape = schema.shape();
    let merged = walk::merge(&shape, Some(live), Some(applied)).unwrap_or_default();
    let reset = reset::fields(schema, writer.subresource);
    let mut fields = walk::field_set(&shape, applied);
    fields.subtract_deep(reset);
    let mut own = Entry::new(writer, Operation::Apply, schema.api_version(), fields);
    let last = known.iter().position(|entry| entry.is_same_manager(&own)).map(|position| known.remove(position));
    let value = match &last {
        Some(last) if !last.owns_nothing() => pruned(schema, merged, &last.fields(), &known, &own),
        _ => merged,
    };
    let mut comparison = walk::compare(&shape, live, &value);
    comparison.removed.subtract_deep(reset);
    comparison.changed.subtract_deep(reset);
    let conflicts = conflicts(&known, &comparison.changed, own.api_version());
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    for entry in known.iter_mut().filter(|entry| entry.api_version() == own.api_version()) {
        entry.change(|fields| {
            fields.subtract(&comparison.changed);
            fields.subtract(&comparison.removed);
        });
    }
    own.change(|fields| fields.subtract(&UNOWNED));
    // Applying without a change does not set a new time.
    if value == *live {
        own.set_time(last.as_ref().and_then(Entry::time));
    }
    known.push(own);
    known.retain(|entry| !entry.owns_nothing());
    Ok((value, known))
}

fn conflicts(known: &[Entry], changed: &FieldSet, api_version: &str) -> Vec<Conflict> {
    let mut owners: Vec<&Entry> = known.iter().filter(|entry| entry.api_version() == api_version).collect();
    owners.sort_by_key(|entry| entry.identity());
    let mut conflicts = Vec::new();
    for entry in owners {
        let fields = entry.fields().intersection(changed).paths();
        conflicts.extend(fields.into_iter().map(|field| Conflict { owner: entry.describe(), field }));
    }
    conflicts
}

/// Removes fields that the manager applied the last time but not now, unless another manager owns
/// them.
fn pruned(schema: &Schema, merged: Value, last: &FieldSet, others: &[Entry], own: &Entry) -> Value {
    let shape = schema.shape();
    let last = walk::with_named_fields(&shape, last);
    let pruned = walk::without(&shape, &merged, last.root());
    let mut kept = walk::with_named_fields(&shape, &walk::field_set(&shape, &pruned));
    for entry in others.iter().chain([own]) {
        kept.add(walk::with_named_fields(&shape, &entry.fields()));
    }
    let all = walk::with_named_fields(&shape, &walk::field_set(&shape, &merged));
    let mut unowned = all.clone();
    unowned.subtract(&kept);
    let pruned = walk::without(&shape, &merged, unowned.root());
    let mut gone = all;
    gone.subtract(&walk::with_named_fields(&shape, &walk::field_set(&shape, &pruned)));
    let gone = gone.intersection(&last);
    if gone.is_empty() { merged } else { walk::without(&shape, &merged, gone.root()) }
}

/// Conflicts, without those about fields that kubectl applied client-side and that have not changed
/// since.
fn not_client_side_applied(schema: &Schema, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let annotation = live
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(LAST_APPLIED))
        .and_then(Value::as_str);
    let Some(last) = annotation.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return conflicts };
    if last.get("apiVersion").and_then(Value::as_str) != Some(schema.api_version().as_str()) {
        return conflicts;
    }
    let shape = schema.shape();
    let mut allowed = walk::field_set(&shape, &last);
    let comparison = walk::compare(&shape, &last, live);
    allowed.subtract(&comparison.changed);
    allowed.subtract(&comparison.removed);
    let allowed = allowed.paths();
    conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.field)).collect()
}

/// Updates kubectl's last-applied annotation, if there is one.
fn update_last_applied(value: &mut Value, applied: &Value) {
    let annotation =
        value.pointer_mut("/metadata/annotations").and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    let Some(annotation) = annotation.filter(|annotation| **annotation != "") else { return };
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    *annotation = Value::from(format!("{applied}\n"));
}
