//! Replacing objects: what a PUT and every patch end in.

use super::call::Call;
use super::create::{read_body, settle_namespace, warn_of_double_owners};
use super::list_options::flaw;
use super::{Answer, Api, decoded, key_of};
use crate::invalid::FieldErrors;
use crate::metadata::{self, Care};
use crate::status::Status;
use crate::store::{self, Stored};
use crate::structure::{self, By};
use crate::value::{at, copy, list, map_mut, set, take, text};
use serde_json::Value;
use std::sync::Arc;

impl Api {
    /// Replaces an object with what a body describes.
    pub(super) fn update(&mut self, call: &mut Call<'_>) -> Result<Answer, Status> {
        let target = &call.request.target;
        let mut object = read_body(call)?;
        check_name(call, &object)?;
        settle_namespace(call, &mut object)?;
        let key = key_of(&target.namespace, &target.name);
        let Some(live) = self.store.get(call.kind.space, &key).cloned() else {
            if call.kind.manners.create_on_update && call.subresource().is_empty() {
                return self.create_by_update(call, object);
            }
            return Err(Status::not_found(call.kind, &target.name));
        };
        let said = text(&object, &["metadata", "uid"]);
        if !said.is_empty() && said != &*live.uid {
            return Err(call.other_object(&target.name, said, &live.uid));
        }
        let old = decoded(&live);
        self.replace(call, &live, old, object, false)
    }

    /// Puts a new state in the place of an old one. Both are in the form that clients see; owners of fields are kept, unless an apply did.
    pub(super) fn replace(
        &mut self,
        call: &mut Call<'_>,
        live: &Arc<Stored>,
        old: Value,
        mut new: Value,
        applied: bool,
    ) -> Result<Answer, Status> {
        let kind = call.kind;
        kind.rules.fill_in(&mut new);
        warn_of_double_owners(call, &mut new);
        if !applied {
            let now = call.now_text();
            let by = By { manager: &call.manager, subresource: call.subresource(), now: &now };
            match kind.manners.view {
                None => structure::track(kind, Some(&old), &mut new, by)?,
                Some(view) => {
                    let mut shown = old.clone();
                    (view.show)(&mut shown);
                    structure::track(kind, Some(&shown), &mut new, by)?;
                }
            }
        }
        if let Some(view) = kind.manners.view {
            (view.store)(&mut new);
        }
        check_revision(call, live, &mut new)?;
        keep_what_is_ours(&mut new, &old);
        kind.rules.prepare_change(&mut new, &old, &call.scene(&self.store));
        if text(&new, &["metadata", "uid"]).is_empty() {
            copy(&old, &mut new, &["metadata", "uid"]);
        }
        let mut flaws = FieldErrors::default();
        let care = if call.subresource().is_empty() { kind.rules.care() } else { Care::Change };
        metadata::check_change(kind, &new, &old, care, &mut flaws);
        kind.rules.check_change(&new, &old, &call.scene(&self.store), &mut flaws);
        flaws.refuse(kind, &call.request.target.name)?;
        if call.subresource().is_empty() {
            kind.rules.warn(&new, Some(&old)).into_iter().for_each(|warning| call.warn(warning));
        }
        revert_times(&mut new, &old);
        kind.rules.admit_change(&new, &old, &call.scene(&self.store))?;
        self.keep_changed(call, live, &new, &old)
    }

    fn keep_changed(
        &mut self,
        call: &mut Call<'_>,
        live: &Arc<Stored>,
        new: &Value,
        old: &Value,
    ) -> Result<Answer, Status> {
        let target = &call.request.target;
        let key = key_of(&target.namespace, &target.name);
        if is_done(call.kind.space, new) {
            if !call.dry_run {
                self.commit_removal(call.kind, &key, old, call.now);
            }
            let shown = store::encode(new, live.revision).bytes;
            return Ok(call.show(200, &shown, self.store.revision()));
        }
        if new == old && !live.is_draft {
            return Ok(call.show(200, &live.bytes, self.store.revision()));
        }
        if call.dry_run {
            let shown = store::encode(new, live.revision).bytes;
            return Ok(call.show(200, &shown, self.store.revision()));
        }
        let stored = self.commit(call.kind, &key, new, call.now);
        Ok(call.show(200, &stored.bytes, stored.revision))
    }
}

/// A body names the object that the path names.
pub(super) fn check_name(call: &Call<'_>, object: &Value) -> Result<(), Status> {
    let (wanted, said) = (&call.request.target.name, text(object, &["metadata", "name"]));
    if said.is_empty() {
        let why = "was undeterminable: name must be provided";
        return Err(Status::bad_request(format!("the name of the object ({wanted} based on URL) {why}")));
    }
    if said != wanted {
        let why = format!("the name of the object ({said}) does not match the name on the URL ({wanted})");
        return Err(Status::bad_request(why));
    }
    Ok(())
}

/// Whoever says which revision it changes must say the last one.
fn check_revision(call: &Call<'_>, live: &Stored, new: &mut Value) -> Result<(), Status> {
    let said = text(new, &["metadata", "resourceVersion"]);
    let name = &call.request.target.name;
    let revision: u64 = match said {
        "" => 0,
        _ => said
            .parse()
            .map_err(|_| Status::failure(500, "", format!("strconv.ParseUint: parsing {said:?}: {}", flaw(said))))?,
    };
    if revision == 0 {
        if !call.kind.manners.unconditional_update {
            let mut flaws = FieldErrors::default();
            flaws.invalid("metadata.resourceVersion", 0, "must be specified for an update");
            flaws.refuse_as(call.kind.group, call.kind.plural, name)?;
        }
    } else if revision != live.revision {
        return Err(Status::modified(call.kind, name));
    }
    set(new, &["metadata", "resourceVersion"], live.revision.to_string());
    Ok(())
}

/// What no client can change.
fn keep_what_is_ours(new: &mut Value, old: &Value) {
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

/// If nothing but the times in managedFields differs, nothing differs.
fn revert_times(new: &mut Value, old: &Value) {
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
    let kept = map_mut(new, &["metadata"]).remove("managedFields");
    copy(old, new, &PATH);
    if new != old
        && let Some(kept) = kept
    {
        set(new, &PATH, kept);
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(super) fn is_done(space: &str, object: &Value) -> bool {
    let waits = match space {
        "namespaces" => !list(object, &["spec", "finalizers"]).is_empty(),
        _ => false,
    };
    let grace = at(object, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    at(object, &["metadata", "deletionTimestamp"]).is_some()
        && list(object, &["metadata", "finalizers"]).is_empty()
        && grace == 0
        && !waits
}
