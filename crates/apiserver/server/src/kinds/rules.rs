//! What a kind may say for itself on the way of an object into the store. Whatever it leaves out is done as for most kinds.

use super::Kind;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::status::Status;
use crate::store::Store;
use crate::value;
use bindery_model::Quantity;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt::Debug;

/// What can be seen by a rule besides its object.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The time.
    pub now: Timestamp,
    /// Everything else.
    pub store: &'a Store,
    /// The kind as it was asked for: kinds that share storage may differ.
    pub kind: &'static Kind,
    /// Empty for the object itself.
    pub subresource: &'a str,
}

/// A field that can be selected by, and how its value is read.
pub type Selectable = (&'static str, fn(&Value) -> String);

/// The rules of a kind. Objects are shown to them in canonical form, in the version in which they are stored.
pub trait Rules: Sync + Debug {
    /// Fills in what was left out; on every write.
    fn fill_in(&self, _object: &mut Value) {}

    /// Mutating admission of a new object.
    fn admit(&self, _object: &mut Value, _scene: &Scene<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// Makes a new object ready: what clients may not set is reset.
    fn prepare(&self, _object: &mut Value, _scene: &Scene<'_>) {}

    /// Makes a changed object ready: what may not be changed through this path is as it was.
    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        only_its_own_part(new, old, scene.subresource);
    }

    /// Looks for flaws in a new object.
    fn check(&self, _object: &Value, _scene: &Scene<'_>, _flaws: &mut FieldErrors) {}

    /// Looks for flaws in a changed object.
    fn check_change(&self, new: &Value, _old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        if scene.subresource.is_empty() {
            self.check(new, scene, flaws);
        }
    }

    /// What is looked at when metadata has changed.
    fn care(&self) -> Care {
        Care::Change
    }

    /// Validating admission of a changed object.
    fn admit_change(&self, _new: &Value, _old: &Value, _scene: &Scene<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// What the client should be told about an object that was accepted.
    fn warn(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// What a row of a table says besides its cells, such as that the object is done.
    fn row_conditions(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Whether the name is one; every way in which it is not.
    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::names::subdomain(name, prefix)
    }

    /// The value of a field that can be selected by, besides name and namespace; none for fields that cannot.
    fn selectable(&self) -> &'static [Selectable] {
        &[]
    }
}

/// Main resources leave the status as it was; `/status` leaves all but status and metadata as it was.
pub fn only_its_own_part(new: &mut Value, old: &Value, subresource: &str) {
    if subresource != "status" {
        keep(new, old, "status");
        return;
    }
    let names = |object: &Value| -> Vec<String> {
        value::map(object, &[]).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    for name in names(old).iter().chain(&names(new)).filter(|name| !matches!(name.as_str(), "status" | "metadata")) {
        keep(new, old, name);
    }
}

/// Leaves a part as it was. Mostly it is already, and looking is cheaper than copying.
fn keep(new: &mut Value, old: &Value, name: &str) {
    if new.get(name) != old.get(name) {
        value::copy(old, new, &[name]);
    }
}

/// A kind without rules of its own.
#[derive(Debug)]
pub struct Plain;

impl Rules for Plain {}

/// Rounds quantities up to thousandths: upstream keeps no smaller parts of resources.
pub fn round_up(object: &mut Value, path: &[&str]) {
    let found = path.iter().try_fold(object, |value, step| value.get_mut(step));
    for quantity in found.and_then(Value::as_object_mut).into_iter().flat_map(|resources| resources.values_mut()) {
        let Some(text) = quantity.as_str().filter(|text| text.ends_with(['n', 'u'])) else { continue };
        let Ok(exact) = text.parse::<Quantity>() else { continue };
        let mut number = exact.nanos().div_euclid(1_000_000) + i128::from(exact.nanos() % 1_000_000 != 0);
        let mut suffixes = ["m", "", "k", "M", "G", "T", "P", "E"].iter();
        let mut suffix = suffixes.next();
        while number % 1000 == 0 && number != 0 && suffixes.len() > 0 {
            (number, suffix) = (number / 1000, suffixes.next());
        }
        *quantity = format!("{number}{}", suffix.unwrap_or(&"")).into();
    }
}

/// Puts a finalizer on a new object, so that it does not go while it is used.
pub fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers = value::list(object, &["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == finalizer) {
        finalizers.push(finalizer.into());
        value::set(object, &["metadata", "finalizers"], finalizers);
    }
}
