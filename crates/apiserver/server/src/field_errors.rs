//! Validation errors of fields, with upstream's wording.

use crate::kinds::Kind;
use crate::status::{Cause, Details, Status};
use serde_json::Value;

/// The validation errors of an object, in the order in which they were found.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<FieldError>);

/// A validation error.
#[derive(Debug, Clone, PartialEq)]
struct FieldError {
    field: String,
    reason: &'static str,
    text: String,
}

impl FieldErrors {
    fn push(&mut self, field: impl Into<String>, reason: &'static str, text: String) {
        self.0.push(FieldError { field: field.into(), reason, text });
    }

    /// The field is required.
    pub fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.push(field, "FieldValueRequired", with_detail("Required value", detail));
    }

    /// The value is invalid.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, detail: &str) {
        self.push(field, "FieldValueInvalid", with_detail(&format!("Invalid value: {}", value.into()), detail));
    }

    /// The value is invalid; `value` is printed as it is.
    pub fn invalid_text(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.push(field, "FieldValueInvalid", with_detail(&format!("Invalid value: {value}"), detail));
    }

    /// The field must not be set, or must not change.
    pub fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.push(field, "FieldValueForbidden", with_detail("Forbidden", detail));
    }

    /// The value is not one of the supported values.
    pub fn unsupported(&mut self, field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let text = format!("Unsupported value: {}: supported values: {}", value.into(), supported.join(", "));
        self.push(field, "FieldValueNotSupported", text);
    }

    /// The value occurs twice.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(field, "FieldValueDuplicate", format!("Duplicate value: {}", value.into()));
    }

    /// The value occurs twice; `value` is printed as it is.
    pub fn duplicate_text(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.push(field, "FieldValueDuplicate", with_detail(&format!("Duplicate value: {value}"), detail));
    }

    /// The value refers to something that does not exist.
    pub fn not_found(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(field, "FieldValueNotFound", format!("Not found: {}", value.into()));
    }

    /// The value has too many bytes.
    pub fn too_long(&mut self, field: impl Into<String>, max: usize) {
        self.push(field, "FieldValueTooLong", format!("Too long: may not be more than {max} bytes"));
    }

    /// Adds the errors of a part of the object.
    pub fn extend_within(&mut self, path: &str, part: FieldErrors) {
        self.0.extend(part.0.into_iter().map(|error| FieldError { field: format!("{path}.{}", error.field), ..error }));
    }

    /// All errors in one text, without duplicates.
    pub fn text(&self) -> String {
        let mut texts: Vec<String> = Vec::new();
        for error in &self.0 {
            let text = format!("{}: {}", error.field, error.text);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) }
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of errors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// 422 for an object of a kind, if there are errors.
    pub fn into_result(self, kind: &Kind, name: &str) -> Result<(), Status> {
        // Errors about a view name the group of the stored form.
        let group = if kind.behavior.view.is_some() { "" } else { kind.group };
        self.into_result_for(group, kind.kind, name)
    }

    /// 422 for something that is not a stored object, if there are errors.
    pub fn into_result_for(self, group: &str, kind: &str, name: &str) -> Result<(), Status> {
        if self.0.is_empty() {
            return Ok(());
        }
        let all = self.text();
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let causes = self.0.into_iter().map(|error| Cause {
            reason: error.reason.to_owned(),
            message: error.text,
            field: error.field,
        });
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: causes.collect(),
            ..Details::default()
        };
        Err(Status::failure(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {all}")).with(details))
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") }
}
