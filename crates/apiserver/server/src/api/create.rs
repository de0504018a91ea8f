//! Creating objects.

use super::write::Write;
use super::{Answer, Api, key_of};
use crate::codec;
use crate::field_errors::FieldErrors;
use crate::kinds;
use crate::metadata;
use crate::status::{Cause, Status};
use crate::store;
use crate::value::{at, map_mut, set, text};
use bindery_fields::Validation;
use serde_json::Value;

/// How many generated names are tried.
const NAME_ATTEMPTS: usize = 8;

impl Api {
    /// Creates the object in the body.
    pub(super) fn create(&mut self, write: &mut Write<'_>) -> Result<Answer, Status> {
        if write.subresource() == "binding" {
            return self.bind_pod(write);
        }
        if !write.subresource().is_empty() || !write.request.target.name.is_empty() {
            return Err(Status::not_allowed());
        }
        let mut object = read_body(write)?;
        resolve_namespace(write, &mut object)?;
        self.insert(write, object, false)
    }

    /// Creates an object by PUT. A body with a UID refers to an existing object.
    pub(super) fn create_by_update(&mut self, write: &mut Write<'_>, mut object: Value) -> Result<Answer, Status> {
        let uid = text(&object, &["metadata", "uid"]);
        if !uid.is_empty() {
            return Err(write.uid_conflict(&write.request.target.name, uid, ""));
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        self.insert(write, object, false)
    }

    /// Creates an object by server-side apply.
    pub(super) fn create_by_apply(&mut self, write: &mut Write<'_>, mut object: Value) -> Result<Answer, Status> {
        let uid = text(&object, &["metadata", "uid"]);
        if !uid.is_empty() {
            let why = format!("the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(write.kind, &write.request.target.name, &format!("uid mismatch: {why}")));
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        self.insert(write, object, true)
    }

    /// Defaults, admits, validates and stores a new object.
    pub(super) fn insert(&mut self, write: &mut Write<'_>, mut object: Value, applied: bool) -> Result<Answer, Status> {
        let kind = write.kind;
        for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            map_mut(&mut object, &["metadata"]).remove(field);
        }
        kind.strategy.set_defaults(&mut object);
        warn_duplicate_owners(write, &mut object);
        if !applied {
            let now = write.now_text();
            let writer = write.field_writer(&now);
            codec::track(kind, None, &mut object, &writer)?;
        }
        if let Some(view) = kind.behavior.view {
            (view.store)(&mut object);
        }
        self.validate_namespace(write, text(&object, &["metadata", "name"]))?;
        kind.strategy.admit(&mut object, &write.context(&self.store))?;
        set(&mut object, &["metadata", "creationTimestamp"], write.now_text());
        set(&mut object, &["metadata", "uid"], write.rng.uid());
        let generated = text(&object, &["metadata", "name"]).is_empty();
        if generated {
            self.generate_name(write, &mut object);
        }
        kind.strategy.prepare_for_create(&mut object, &write.context(&self.store));
        let mut errors = FieldErrors::default();
        metadata::validate(kind, &object, &mut errors);
        kind.strategy.validate(&object, &write.context(&self.store), &mut errors);
        errors.into_result(kind, text(&object, &["metadata", "name"]))?;
        for warning in kind.strategy.warnings(&object, None) {
            write.warn(warning);
        }
        if !matches!(text(&object, &["metadata", "resourceVersion"]), "" | "0") {
            return Err(Status::failure(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.store_new(write, object, generated)
    }

    fn store_new(&mut self, write: &mut Write<'_>, mut object: Value, generated: bool) -> Result<Answer, Status> {
        let name = text(&object, &["metadata", "name"]).to_owned();
        let key = key_of(text(&object, &["metadata", "namespace"]), &name);
        if let Some(existing) = self.store.get(write.kind.bucket(), &key) {
            let mut status = Status::already_exists(write.kind, &name);
            if generated {
                status.message += ", the server was not able to generate a unique name for the object";
                status.details.get_or_insert_default().retry_after_seconds = Some(1);
            } else if at(&super::decoded(existing), &["metadata", "deletionTimestamp"]).is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        if write.dry_run {
            return Ok(write.show(201, &store::encode_draft(&object), self.store.revision()));
        }
        let stored = self.commit_new(write.kind, &key, &object, write.now)?;
        Ok(write.show(201, &stored.bytes, stored.revision))
    }

    fn generate_name(&self, write: &mut Write<'_>, object: &mut Value) {
        let prefix = text(object, &["metadata", "generateName"]).to_owned();
        if prefix.is_empty() {
            return;
        }
        let namespace = text(object, &["metadata", "namespace"]).to_owned();
        for _ in 0..NAME_ATTEMPTS {
            let name = write.rng.name(&prefix);
            let taken = self.store.get(write.kind.bucket(), &key_of(&namespace, &name)).is_some();
            set(object, &["metadata", "name"], name);
            if !taken {
                return;
            }
        }
    }

    /// The namespace of a new object must exist and must not be terminating.
    fn validate_namespace(&self, write: &Write<'_>, name: &str) -> Result<(), Status> {
        let namespace = &write.request.target.namespace;
        if !write.kind.namespaced {
            return Ok(());
        }
        let Some(found) = self.store.get("namespaces", namespace) else {
            return Err(Status::not_found(&kinds::namespace::KIND, namespace));
        };
        if at(&super::decoded(found), &["metadata", "deletionTimestamp"]).is_none() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Status::forbidden(write.kind, name, &why);
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        status.details.get_or_insert_default().causes = vec![cause];
        Err(status)
    }
}

/// Decodes the body of a write, and reports its strict decoding errors.
pub(super) fn read_body(write: &mut Write<'_>) -> Result<Value, Status> {
    let report = write.validation() != Validation::Ignore;
    let read = codec::read(write.kind, &write.request.body, report)?;
    let kind = write.kind;
    handle_strict_errors(write, read.strict_errors, |errors| {
        let why = format!("{} in version {:?} cannot be handled as a {}", kind.kind, kind.version, kind.kind);
        Status::bad_request(format!("{why}: strict decoding error: {errors}"))
    })?;
    Ok(read.value)
}

/// Reports strict decoding errors as an error or as warnings, as the client requested.
pub(super) fn handle_strict_errors(
    write: &mut Write<'_>,
    errors: Vec<String>,
    reject: impl Fn(String) -> Status,
) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    match write.validation() {
        Validation::Ignore => Ok(()),
        Validation::Strict => Err(reject(errors.join(", "))),
        Validation::Warn => {
            errors.into_iter().for_each(|error| write.warn(error));
            Ok(())
        }
    }
}

/// Sets the namespace of the object to that of the path. They must not differ.
pub(super) fn resolve_namespace(write: &Write<'_>, object: &mut Value) -> Result<(), Status> {
    if !write.kind.namespaced {
        map_mut(object, &["metadata"]).remove("namespace");
        return Ok(());
    }
    let wanted = write.request.target.namespace.as_str();
    let given = text(object, &["metadata", "namespace"]);
    if given.is_empty() {
        set(object, &["metadata", "namespace"], wanted);
    } else if given != wanted {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    Ok(())
}

pub(super) fn warn_duplicate_owners(write: &mut Write<'_>, object: &mut Value) {
    let duplicates = metadata::remove_duplicate_owners(object);
    if !duplicates.is_empty() {
        write.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such \
             requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(", ")
        ));
    }
}
