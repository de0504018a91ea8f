//! Replacing objects, by PUT and by every kind of patch.

use super::create::{read_body, resolve_namespace, warn_duplicate_owners};
use super::list_options::parse_error;
use super::write::Write;
use super::{Answer, Api, decoded, key_of};
use crate::codec;
use crate::field_errors::FieldErrors;
use crate::metadata::{self, MetadataValidation};
use crate::status::Status;
use crate::store::{self, Stored};
use crate::value::{at, copy, list, map_mut, set, take, text};
use serde_json::Value;
use std::sync::Arc;

impl Api {
    /// Replaces an object with the one in the body.
    pub(super) fn update(&mut self, write: &mut Write<'_>) -> Result<Answer, Status> {
        let target = &write.request.target;
        let mut object = read_body(write)?;
        validate_name(write, &object)?;
        resolve_namespace(write, &mut object)?;
        let key = key_of(&target.namespace, &target.name);
        let Some(live) = self.store.get(write.kind.bucket(), &key).cloned() else {
            if write.kind.behavior.create_on_update && write.subresource().is_empty() {
                return self.create_by_update(write, object);
            }
            return Err(Status::not_found(write.kind, &target.name));
        };
        let given = text(&object, &["metadata", "uid"]);
        if !given.is_empty() && given != &*live.uid {
            return Err(write.uid_conflict(&target.name, given, &live.uid));
        }
        let old = decoded(&live);
        self.replace(write, &live, old, object, false)
    }

    /// Replaces the stored object. `new` is in the form that clients see, `old` in stored form.
    /// Field ownership is tracked here, unless an apply already has.
    pub(super) fn replace(
        &mut self,
        write: &mut Write<'_>,
        live: &Arc<Stored>,
        old: Value,
        mut new: Value,
        applied: bool,
    ) -> Result<Answer, Status> {
        let kind = write.kind;
        kind.strategy.set_defaults(&mut new);
        warn_duplicate_owners(write, &mut new);
        if !applied {
            let now = write.now_text();
            let writer = write.field_writer(&now);
            match kind.behavior.view {
                None => codec::track(kind, Some(&old), &mut new, &writer)?,
                Some(view) => {
                    let mut shown = old.clone();
                    (view.show)(&mut shown);
                    codec::track(kind, Some(&shown), &mut new, &writer)?;
                }
            }
        }
        if let Some(view) = kind.behavior.view {
            (view.store)(&mut new);
        }
        validate_revision(write, live, &mut new)?;
        restore_system_fields(&mut new, &old);
        kind.strategy.prepare_for_update(&mut new, &old, &write.context(&self.store));
        if text(&new, &["metadata", "uid"]).is_empty() {
            copy(&old, &mut new, &["metadata", "uid"]);
        }
        let mut errors = FieldErrors::default();
        let metadata_validation = if write.subresource().is_empty() {
            kind.strategy.metadata_validation()
        } else {
            MetadataValidation::Update
        };
        metadata::validate_update(kind, &new, &old, metadata_validation, &mut errors);
        kind.strategy.validate_update(&new, &old, &write.context(&self.store), &mut errors);
        errors.into_result(kind, &write.request.target.name)?;
        if write.subresource().is_empty() {
            kind.strategy.warnings(&new, Some(&old)).into_iter().for_each(|warning| write.warn(warning));
        }
        restore_times_if_unchanged(&mut new, &old);
        kind.strategy.admit_update(&new, &old, &write.context(&self.store))?;
        self.store_update(write, live, &new, &old)
    }

    fn store_update(
        &mut self,
        write: &mut Write<'_>,
        live: &Arc<Stored>,
        new: &Value,
        old: &Value,
    ) -> Result<Answer, Status> {
        let target = &write.request.target;
        let key = key_of(&target.namespace, &target.name);
        if is_deletable(write.kind.bucket(), new) {
            if !write.dry_run {
                self.commit_removal(write.kind, &key, old, write.now);
            }
            let shown = store::encode(new, live.revision).bytes;
            return Ok(write.show(200, &shown, self.store.revision()));
        }
        if new == old && !live.is_draft {
            return Ok(write.show(200, &live.bytes, self.store.revision()));
        }
        if write.dry_run {
            let shown = store::encode(new, live.revision).bytes;
            return Ok(write.show(200, &shown, self.store.revision()));
        }
        let stored = self.commit_update(write.kind, &key, new, write.now)?;
        Ok(write.show(200, &stored.bytes, stored.revision))
    }
}

/// The body must have the name of the path.
pub(super) fn validate_name(write: &Write<'_>, object: &Value) -> Result<(), Status> {
    let (wanted, given) = (&write.request.target.name, text(object, &["metadata", "name"]));
    if given.is_empty() {
        let why = "was undeterminable: name must be provided";
        return Err(Status::bad_request(format!("the name of the object ({wanted} based on URL) {why}")));
    }
    if given != wanted {
        let why = format!("the name of the object ({given}) does not match the name on the URL ({wanted})");
        return Err(Status::bad_request(why));
    }
    Ok(())
}

/// A resourceVersion in the body must be the latest one.
fn validate_revision(write: &Write<'_>, live: &Stored, new: &mut Value) -> Result<(), Status> {
    let given = text(new, &["metadata", "resourceVersion"]);
    let name = &write.request.target.name;
    let revision: u64 = match given {
        "" => 0,
        _ => given.parse().map_err(|_| {
            Status::failure(500, "", format!("strconv.ParseUint: parsing {given:?}: {}", parse_error(given)))
        })?,
    };
    if revision == 0 {
        if !write.kind.behavior.unconditional_update {
            let mut errors = FieldErrors::default();
            errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
            errors.into_result_for(write.kind.group, write.kind.plural, name)?;
        }
    } else if revision != live.revision {
        return Err(Status::modified(write.kind, name));
    }
    set(new, &["metadata", "resourceVersion"], live.revision.to_string());
    Ok(())
}

/// Restores the metadata that no client can change.
fn restore_system_fields(new: &mut Value, old: &Value) {
    copy(old, new, &["metadata", "generation"]);
    copy(old, new, &["metadata", "creationTimestamp"]);
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        copy(old, new, &["metadata", "deletionTimestamp"]);
    }
    if at(new, &["metadata", "deletionGracePeriodSeconds"]).is_none() {
        copy(old, new, &["metadata", "deletionGracePeriodSeconds"]);
    }
    take(new, &["metadata", "selfLink"]);
}

/// If only the times in managedFields differ, the object counts as unchanged.
fn restore_times_if_unchanged(new: &mut Value, old: &Value) {
    const PATH: [&str; 2] = ["metadata", "managedFields"];
    let (ours, theirs) = (list(new, &PATH), list(old, &PATH));
    if ours == theirs || ours.len() != theirs.len() {
        return;
    }
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        take(&mut entry, &["time"]);
        entry
    };
    if !ours.iter().zip(theirs).all(|(ours, theirs)| timeless(ours) == timeless(theirs)) {
        return;
    }
    let load_or_create = map_mut(new, &["metadata"]).remove("managedFields");
    copy(old, new, &PATH);
    if new != old
        && let Some(load_or_create) = load_or_create
    {
        set(new, &PATH, load_or_create);
    }
}

/// Whether an object marked for deletion has nothing left to wait for.
pub(super) fn is_deletable(bucket: &str, object: &Value) -> bool {
    let waits = match bucket {
        "namespaces" => !list(object, &["spec", "finalizers"]).is_empty(),
        _ => false,
    };
    let grace = at(object, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    at(object, &["metadata", "deletionTimestamp"]).is_some()
        && list(object, &["metadata", "finalizers"]).is_empty()
        && grace == 0
        && !waits
}
