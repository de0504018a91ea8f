//! Creating objects.

use super::call::Call;
use super::{Answer, Api, key_of};
use crate::invalid::FieldErrors;
use crate::kinds;
use crate::metadata;
use crate::status::{Cause, Status};
use crate::store;
use crate::structure::{self, By};
use crate::value::{at, map_mut, set, text};
use bindery_fields::Validation;
use serde_json::Value;

/// How often a generated name is drawn before it is given up.
const NAME_ATTEMPTS: usize = 8;

impl Api {
    /// Creates what a body describes.
    pub(super) fn create(&mut self, call: &mut Call<'_>) -> Result<Answer, Status> {
        if call.subresource() == "binding" {
            return self.bind_pod(call);
        }
        if !call.subresource().is_empty() || !call.request.target.name.is_empty() {
            return Err(Status::not_allowed());
        }
        let mut object = read_body(call)?;
        settle_namespace(call, &mut object)?;
        self.insert(call, object, false)
    }

    /// A PUT of what is not there yet. Whoever says which object it is to change means another one.
    pub(super) fn create_by_update(&mut self, call: &mut Call<'_>, mut object: Value) -> Result<Answer, Status> {
        let uid = text(&object, &["metadata", "uid"]);
        if !uid.is_empty() {
            return Err(call.other_object(&call.request.target.name, uid, ""));
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        self.insert(call, object, false)
    }

    /// An apply of what is not there yet.
    pub(super) fn create_by_apply(&mut self, call: &mut Call<'_>, mut object: Value) -> Result<Answer, Status> {
        let uid = text(&object, &["metadata", "uid"]);
        if !uid.is_empty() {
            let why = format!("the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(call.kind, &call.request.target.name, &format!("uid mismatch: {why}")));
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        self.insert(call, object, true)
    }

    /// Brings a new object into the store, whoever made it up.
    pub(super) fn insert(&mut self, call: &mut Call<'_>, mut object: Value, applied: bool) -> Result<Answer, Status> {
        let kind = call.kind;
        for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            map_mut(&mut object, &["metadata"]).remove(field);
        }
        kind.rules.fill_in(&mut object);
        warn_of_double_owners(call, &mut object);
        if !applied {
            let now = call.now_text();
            let by = By { manager: &call.manager, subresource: call.subresource(), now: &now };
            structure::track(kind, None, &mut object, by)?;
        }
        if let Some(view) = kind.manners.view {
            (view.store)(&mut object);
        }
        self.check_namespace(call, text(&object, &["metadata", "name"]))?;
        kind.rules.admit(&mut object, &call.scene(&self.store))?;
        set(&mut object, &["metadata", "creationTimestamp"], call.now_text());
        set(&mut object, &["metadata", "uid"], call.chance.uid());
        let generated = text(&object, &["metadata", "name"]).is_empty();
        if generated {
            self.generate_name(call, &mut object);
        }
        kind.rules.prepare(&mut object, &call.scene(&self.store));
        let mut flaws = FieldErrors::default();
        metadata::check(kind, &object, &mut flaws);
        kind.rules.check(&object, &call.scene(&self.store), &mut flaws);
        flaws.refuse(kind, text(&object, &["metadata", "name"]))?;
        for warning in kind.rules.warn(&object, None) {
            call.warn(warning);
        }
        if !matches!(text(&object, &["metadata", "resourceVersion"]), "" | "0") {
            return Err(Status::failure(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.keep_new(call, object, generated)
    }

    fn keep_new(&mut self, call: &mut Call<'_>, mut object: Value, generated: bool) -> Result<Answer, Status> {
        let name = text(&object, &["metadata", "name"]).to_owned();
        let key = key_of(text(&object, &["metadata", "namespace"]), &name);
        if let Some(existing) = self.store.get(call.kind.space, &key) {
            let mut status = Status::already_exists(call.kind, &name);
            if generated {
                status.message += ", the server was not able to generate a unique name for the object";
                status.details.get_or_insert_default().retry_after_seconds = Some(1);
            } else if at(&super::decoded(existing), &["metadata", "deletionTimestamp"]).is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        map_mut(&mut object, &["metadata"]).remove("resourceVersion");
        if call.dry_run {
            return Ok(call.show(201, &store::encode_draft(&object), self.store.revision()));
        }
        let stored = self.commit_new(call.kind, &key, &object, call.now);
        Ok(call.show(201, &stored.bytes, stored.revision))
    }

    fn generate_name(&self, call: &mut Call<'_>, object: &mut Value) {
        let prefix = text(object, &["metadata", "generateName"]).to_owned();
        if prefix.is_empty() {
            return;
        }
        let namespace = text(object, &["metadata", "namespace"]).to_owned();
        for _ in 0..NAME_ATTEMPTS {
            let name = call.chance.name(&prefix);
            let taken = self.store.get(call.kind.space, &key_of(&namespace, &name)).is_some();
            set(object, &["metadata", "name"], name);
            if !taken {
                return;
            }
        }
    }

    /// New objects need a namespace that lives.
    fn check_namespace(&self, call: &Call<'_>, name: &str) -> Result<(), Status> {
        let namespace = &call.request.target.namespace;
        if !call.kind.namespaced {
            return Ok(());
        }
        let Some(found) = self.store.get("namespaces", namespace) else {
            return Err(Status::not_found(&kinds::namespace::KIND, namespace));
        };
        if at(&super::decoded(found), &["metadata", "deletionTimestamp"]).is_none() {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Status::forbidden(call.kind, name, &why);
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        status.details.get_or_insert_default().causes = vec![cause];
        Err(status)
    }
}

/// Reads the body of a write, and warns of, or refuses, what is odd about it.
pub(super) fn read_body(call: &mut Call<'_>) -> Result<Value, Status> {
    let report = call.validation() != Validation::Ignore;
    let read = structure::read(call.kind, &call.request.body, report)?;
    let kind = call.kind;
    judge(call, read.flaws, |flaws| {
        let why = format!("{} in version {:?} cannot be handled as a {}", kind.kind, kind.version, kind.kind);
        Status::bad_request(format!("{why}: strict decoding error: {flaws}"))
    })?;
    Ok(read.object)
}

/// Unknown and duplicate fields are refused, or warned of, as the client asked.
pub(super) fn judge(call: &mut Call<'_>, flaws: Vec<String>, refuse: impl Fn(String) -> Status) -> Result<(), Status> {
    if flaws.is_empty() {
        return Ok(());
    }
    match call.validation() {
        Validation::Ignore => Ok(()),
        Validation::Strict => Err(refuse(flaws.join(", "))),
        Validation::Warn => {
            flaws.into_iter().for_each(|flaw| call.warn(flaw));
            Ok(())
        }
    }
}

/// An object is in the namespace that the path names, whether it says so or not.
pub(super) fn settle_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), Status> {
    if !call.kind.namespaced {
        map_mut(object, &["metadata"]).remove("namespace");
        return Ok(());
    }
    let wanted = call.request.target.namespace.as_str();
    let said = text(object, &["metadata", "namespace"]);
    if said.is_empty() {
        set(object, &["metadata", "namespace"], wanted);
    } else if said != wanted {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    Ok(())
}

pub(super) fn warn_of_double_owners(call: &mut Call<'_>, object: &mut Value) {
    let doubled = metadata::without_double_owners(object);
    if !doubled.is_empty() {
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such \
             requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            doubled.join(", ")
        ));
    }
}
