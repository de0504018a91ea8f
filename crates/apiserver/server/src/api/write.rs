//! The context of a write: time, field manager, validation, dry run, and warnings.

use super::{Answer, AnswerBody, Request, RequestContext};
use crate::field_errors::FieldErrors;
use crate::kinds::{Kind, WriteContext};
use crate::rng::Rng;
use crate::status::Status;
use crate::store::Store;
use bindery_fields::Validation;
use bindery_fields::managed::Writer;
use bytes::Bytes;
use jiff::Timestamp;

/// A write in progress.
#[derive(Debug)]
pub struct Write<'a> {
    pub request: &'a Request,
    pub kind: &'static Kind,
    pub now: Timestamp,
    pub rng: Rng,
    /// Whether nothing is stored.
    pub dry_run: bool,
    pub manager: String,
    pub warnings: Vec<String>,
}

impl<'a> Write<'a> {
    /// Validates the options of a write.
    pub fn new(context: &RequestContext, request: &'a Request, options_kind: &str) -> Result<Self, Status> {
        let options = &request.options;
        let mut errors = FieldErrors::default();
        let apply = options_kind == "PatchOptions" && request.verb == super::Verb::Patch(super::PatchType::Apply);
        if apply && options.field_manager.is_empty() {
            errors.required("fieldManager", "is required for apply patch");
        } else if options.force.is_some() && !apply {
            errors.forbidden("force", "may not be specified for non-apply patch");
        }
        if options.field_manager.len() > 128 {
            errors.too_long("fieldManager", 128);
        } else if let Some((place, letter)) =
            options.field_manager.char_indices().find(|(_, letter)| letter.is_control())
        {
            let why = format!("invalid character U+{:04X} (at position {place})", u32::from(letter));
            errors.invalid_text("fieldManager", &bindery_fields::decode::go_quoted(&options.field_manager), &why);
        }
        validate_dry_run(&options.dry_run, &mut errors);
        if !matches!(options.field_validation.as_str(), "" | "Ignore" | "Warn" | "Strict") {
            errors.unsupported("fieldValidation", options.field_validation.as_str(), &["", "Ignore", "Strict", "Warn"]);
        }
        errors.into_result_for("meta.k8s.io", options_kind, "")?;
        Ok(Self {
            request,
            kind: request.target.kind,
            now: context.now,
            rng: Rng::new(context.seed),
            dry_run: !options.dry_run.is_empty(),
            manager: manager(request),
            warnings: Vec::new(),
        })
    }

    /// Who owns the fields that this request writes.
    pub fn field_writer<'n>(&'n self, now: &'n str) -> Writer<'n> {
        Writer { manager: &self.manager, subresource: self.subresource(), now }
    }

    /// The time to the second, as in objects.
    pub fn now_text(&self) -> String {
        second(self.now)
    }

    pub fn subresource(&self) -> &'a str {
        &self.request.target.subresource
    }

    pub fn validation(&self) -> Validation {
        match self.request.options.field_validation.as_str() {
            "Ignore" => Validation::Ignore,
            "Strict" => Validation::Strict,
            _ => Validation::Warn,
        }
    }

    pub fn context<'s>(&'s self, store: &'s Store) -> WriteContext<'s> {
        WriteContext { now: self.now, store, kind: self.kind, subresource: self.subresource() }
    }

    /// An answer with the warnings so far.
    pub fn answer(&mut self, code: u16, body: AnswerBody, revision: u64) -> Answer {
        Answer { code, body, warnings: std::mem::take(&mut self.warnings), revision }
    }

    pub fn show(&mut self, code: u16, object: &Bytes, revision: u64) -> Answer {
        let body = AnswerBody::Object(super::show(self.kind, object));
        self.answer(code, body, revision)
    }

    /// The body has a UID that is not that of the stored object.
    pub fn uid_conflict(&self, name: &str, given: &str, live: &str) -> Status {
        self.precondition_failed(name, "UID", given, live)
    }

    /// The body requires a UID or resourceVersion that the stored object does not have.
    pub fn precondition_failed(&self, name: &str, field: &str, given: &str, live: &str) -> Status {
        // Upstream stores nodes as minions, and its dry runs omit the common prefix.
        let bucket = if self.kind.bucket() == "nodes" { "minions" } else { self.kind.bucket() };
        let prefix = if self.dry_run { "" } else { "/registry" };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {prefix}/{bucket}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: {field} in precondition: {given}, {field} in object meta: {live}",
            super::key_of(&self.request.target.namespace, name),
        );
        Status::conflict(self.kind, name, &why)
    }

    /// Adds a warning, unless it was added before.
    pub fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A time to the second, as in objects.
pub fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The only dry run is `All`.
pub fn validate_dry_run(dry_run: &[String], errors: &mut FieldErrors) {
    if dry_run.iter().any(|one| one != "All") {
        errors.unsupported("dryRun", dry_run.to_vec(), &["All"]);
    }
}

/// The field manager of a request.
fn manager(request: &Request) -> String {
    if !request.options.field_manager.is_empty() {
        return request.options.field_manager.clone();
    }
    let agent = request.user_agent.split('/').next().unwrap_or_default();
    let printable: String = agent.chars().filter(|letter| !letter.is_control()).take(128).collect();
    if printable.is_empty() { "unknown".to_owned() } else { printable }
}
