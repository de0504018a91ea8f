//! How the objects of a kind are created and updated, like upstream's REST strategies. The default
//! methods suit most kinds.

use super::Kind;
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::status::Status;
use crate::store::Store;
use crate::value;
use bindery_model::Quantity;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt::Debug;

/// What a strategy can see besides its object.
#[derive(Debug, Clone, Copy)]
pub struct WriteContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// All stored objects.
    pub store: &'a Store,
    /// The requested kind: kinds that share a bucket may differ.
    pub kind: &'static Kind,
    /// Empty for the object itself.
    pub subresource: &'a str,
}

/// A field for field selectors, and how its value is read.
pub type Selectable = (&'static str, fn(&Value) -> String);

/// Defaults, admission and validation of a kind. Objects are in canonical form and in their stored
/// version.
pub trait Strategy: Sync + Debug {
    /// Sets defaults, on every write.
    fn set_defaults(&self, _object: &mut Value) {}

    /// Mutating admission of a new object.
    fn admit(&self, _object: &mut Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// Prepares a new object: resets fields that clients cannot set.
    fn prepare_for_create(&self, _object: &mut Value, _context: &WriteContext<'_>) {}

    /// Prepares an updated object: restores fields that cannot be changed through this subresource.
    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        restore_read_only_parts(new, old, context.subresource);
    }

    /// Validates a new object.
    fn validate(&self, _object: &Value, _context: &WriteContext<'_>, _errors: &mut FieldErrors) {}

    /// Validates an updated object.
    fn validate_update(&self, new: &Value, _old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        if context.subresource.is_empty() {
            self.validate(new, context, errors);
        }
    }

    /// Which checks are made when metadata is updated.
    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::Update
    }

    /// Validating admission of an updated object.
    fn admit_update(&self, _new: &Value, _old: &Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// Warnings about an accepted object.
    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// The conditions of a table row, such as that the object is completed.
    fn row_conditions(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Validates a name or a prefix for names; returns all errors.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::names::subdomain(name, prefix)
    }

    /// Fields for field selectors, besides name and namespace.
    fn selectable_fields(&self) -> &'static [Selectable] {
        &[]
    }
}

/// Restores the status, or for `/status` everything except status and metadata.
pub fn restore_read_only_parts(new: &mut Value, old: &Value, subresource: &str) {
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

/// Restores a field. Most are unchanged, and comparing is cheaper than copying.
fn keep(new: &mut Value, old: &Value, name: &str) {
    if new.get(name) != old.get(name) {
        value::copy(old, new, &[name]);
    }
}

/// A strategy without any special rules.
#[derive(Debug)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}

/// Rounds quantities up to thousandths, like upstream.
pub fn round_up_to_milli(object: &mut Value, path: &[&str]) {
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

/// Adds a finalizer that protects a new object from deletion while it is in use.
pub fn add_protection_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = value::list(object, &["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == finalizer) {
        finalizers.push(finalizer.into());
        value::set(object, &["metadata", "finalizers"], finalizers);
    }
}
