//! Patches: a new state is made of the last one, and then put in its place as by a PUT.

use super::call::Call;
use super::create::{judge, settle_namespace};
use super::update::check_name;
use super::{Answer, Api, PatchType, decoded, key_of};
use crate::status::Status;
use crate::structure::{self, By};
use crate::value::text;
use serde_json::Value;

impl Api {
    /// Changes an object as a patch says.
    pub(super) fn patch(&mut self, call: &mut Call<'_>, patch: PatchType) -> Result<Answer, Status> {
        let target = &call.request.target;
        let key = key_of(&target.namespace, &target.name);
        let live = self.store.get(call.kind.space, &key).cloned();
        if patch == PatchType::Apply {
            return self.apply(call, live);
        }
        let live = live.ok_or_else(|| Status::not_found(call.kind, &target.name))?;
        let old = decoded(&live);
        let mut shown = None;
        if let Some(view) = call.kind.manners.view {
            (view.show)(shown.insert(old.clone()));
        }
        let base = shown.as_ref().unwrap_or(&old);
        let read = structure::patched(call.kind, base, patch, &call.request.body, call.validation())?;
        read.flaws.into_iter().for_each(|flaw| call.warn(flaw));
        let mut new = read.object;
        check_name(call, &new)?;
        settle_namespace(call, &mut new)?;
        self.replace(call, &live, old, new, false)
    }

    fn apply(
        &mut self,
        call: &mut Call<'_>,
        live: Option<std::sync::Arc<crate::store::Stored>>,
    ) -> Result<Answer, Status> {
        let target = &call.request.target;
        let (body, doubled) = structure::json_and_flaw(&call.request.body)?;
        judge(call, doubled.into_iter().collect(), |flaws| {
            let why = format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {flaws}");
            Status::bad_request(format!("error strict decoding YAML: {why}"))
        })?;
        if let Some(flaw) = bindery_fields::decode::object_mistake(&body) {
            let why = format!("error unmarshaling JSON: while decoding JSON: {flaw}");
            return Err(Status::bad_request(format!("error decoding YAML: {why}")));
        }
        let patch: Value = serde_json::from_slice(&body)
            .map_err(|flaw| Status::bad_request(format!("error decoding YAML: {flaw}")))?;
        let named = text(&patch, &["metadata", "name"]);
        if !named.is_empty() {
            check_name(call, &patch)?;
        }
        let now = call.now_text();
        let by = By { manager: &call.manager, subresource: call.subresource(), now: &now };
        let force = call.request.options.force == Some(true);
        let mut old = live.as_deref().map(decoded);
        if let (Some(old), Some(view)) = (&mut old, call.kind.manners.view) {
            (view.show)(old);
        }
        let mut new = structure::applied(call.kind, old.as_ref(), &patch, force, by)?;
        check_name(call, &new)?;
        settle_namespace(call, &mut new)?;
        match live {
            Some(live) => {
                let old = decoded(&live);
                self.replace(call, &live, old, new, true)
            }
            None if call.subresource().is_empty() => self.create_by_apply(call, new),
            None => Err(Status::not_found(call.kind, &target.name)),
        }
    }
}
