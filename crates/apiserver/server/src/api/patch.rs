//! Patches: the patched object replaces the stored one, as with a PUT.

use super::create::{handle_strict_errors, resolve_namespace};
use super::update::validate_name;
use super::write::Write;
use super::{Answer, Api, PatchType, decoded, key_of};
use crate::codec;
use crate::status::Status;
use crate::value::text;
use serde_json::Value;

impl Api {
    /// Patches an object.
    pub(super) fn patch(&mut self, write: &mut Write<'_>, patch: PatchType) -> Result<Answer, Status> {
        let target = &write.request.target;
        let key = key_of(&target.namespace, &target.name);
        let live = self.store.get(write.kind.bucket(), &key).cloned();
        if patch == PatchType::Apply {
            return self.apply(write, live);
        }
        let live = live.ok_or_else(|| Status::not_found(write.kind, &target.name))?;
        let old = decoded(&live);
        let mut shown = None;
        if let Some(view) = write.kind.behavior.view {
            (view.show)(shown.insert(old.clone()));
        }
        let base = shown.as_ref().unwrap_or(&old);
        let read = codec::patched(write.kind, base, patch, &write.request.body, write.validation())?;
        read.strict_errors.into_iter().for_each(|error| write.warn(error));
        let mut new = read.value;
        validate_name(write, &new)?;
        resolve_namespace(write, &mut new)?;
        self.replace(write, &live, old, new, false)
    }

    fn apply(
        &mut self,
        write: &mut Write<'_>,
        live: Option<std::sync::Arc<crate::store::Stored>>,
    ) -> Result<Answer, Status> {
        let target = &write.request.target;
        let (body, duplicate_key) = codec::json_and_duplicate_key(&write.request.body)?;
        handle_strict_errors(write, duplicate_key.into_iter().collect(), |errors| {
            let why = format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {errors}");
            Status::bad_request(format!("error strict decoding YAML: {why}"))
        })?;
        if let Some(error) = bindery_fields::decode::object_error(&body) {
            let why = format!("error unmarshaling JSON: while decoding JSON: {error}");
            return Err(Status::bad_request(format!("error decoding YAML: {why}")));
        }
        let patch: Value = serde_json::from_slice(&body)
            .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
        let named = text(&patch, &["metadata", "name"]);
        if !named.is_empty() {
            validate_name(write, &patch)?;
        }
        let now = write.now_text();
        let writer = write.field_writer(&now);
        let force = write.request.options.force == Some(true);
        let mut old = live.as_deref().map(decoded);
        if let (Some(old), Some(view)) = (&mut old, write.kind.behavior.view) {
            (view.show)(old);
        }
        let mut new = codec::applied(write.kind, old.as_ref(), &patch, force, &writer)?;
        validate_name(write, &new)?;
        resolve_namespace(write, &mut new)?;
        match live {
            Some(live) => {
                let old = decoded(&live);
                self.replace(write, &live, old, new, true)
            }
            None if write.subresource().is_empty() => self.create_by_apply(write, new),
            None => Err(Status::not_found(write.kind, &target.name)),
        }
    }
}
