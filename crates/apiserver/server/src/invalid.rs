//! What is wrong with the fields of an object, in upstream's words.

use crate::kinds::Kind;
use crate::status::{Cause, Details, Status};
use serde_json::Value;

/// What is wrong with an object, in the order in which it was found.
#[derive(Debug, Default)]
pub struct FieldErrors(Vec<FieldError>);

/// What is wrong with one field.
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

    /// It has to be there.
    pub fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.push(field, "FieldValueRequired", with_detail("Required value", detail));
    }

    /// It cannot be so.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, detail: &str) {
        self.push(field, "FieldValueInvalid", with_detail(&format!("Invalid value: {}", value.into()), detail));
    }

    /// It cannot be so; the value is given as it is to be shown.
    pub fn invalid_text(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.push(field, "FieldValueInvalid", with_detail(&format!("Invalid value: {value}"), detail));
    }

    /// It may not be there, or may not change.
    pub fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.push(field, "FieldValueForbidden", with_detail("Forbidden", detail));
    }

    /// It is none of those that may be.
    pub fn unsupported(&mut self, field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let text = format!("Unsupported value: {}: supported values: {}", value.into(), supported.join(", "));
        self.push(field, "FieldValueNotSupported", text);
    }

    /// It is there twice.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(field, "FieldValueDuplicate", format!("Duplicate value: {}", value.into()));
    }

    /// It is there twice; the value is given as it is to be shown.
    pub fn duplicate_text(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.push(field, "FieldValueDuplicate", with_detail(&format!("Duplicate value: {value}"), detail));
    }

    /// It names what is not there.
    pub fn not_found(&mut self, field: impl Into<String>, value: impl Into<Value>) {
        self.push(field, "FieldValueNotFound", format!("Not found: {}", value.into()));
    }

    /// It has too many bytes.
    pub fn too_long(&mut self, field: impl Into<String>, most: usize) {
        self.push(field, "FieldValueTooLong", format!("Too long: may not be more than {most} bytes"));
    }

    /// Takes over what is wrong with a part of an object.
    pub fn extend_within(&mut self, path: &str, part: FieldErrors) {
        self.0.extend(part.0.into_iter().map(|flaw| FieldError { field: format!("{path}.{}", flaw.field), ..flaw }));
    }

    /// All of them in one text, each once.
    pub fn text(&self) -> String {
        let mut texts: Vec<String> = Vec::new();
        for flaw in &self.0 {
            let text = format!("{}: {}", flaw.field, flaw.text);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// 422 for an object of a kind, if anything is wrong with it.
    pub fn refuse(self, kind: &Kind, name: &str) -> Result<(), Status> {
        // Whatever is shown in another form is refused in the form it is stored in.
        let group = if kind.manners.view.is_some() { "" } else { kind.group };
        self.refuse_as(group, kind.kind, name)
    }

    /// The same, for something that is no object.
    pub fn refuse_as(self, group: &str, kind: &str, name: &str) -> Result<(), Status> {
        if self.0.is_empty() {
            return Ok(());
        }
        let all = self.text();
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let causes = self.0.into_iter().map(|flaw| Cause {
            reason: flaw.reason.to_owned(),
            message: flaw.text,
            field: flaw.field,
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
