//! What is known of a write besides its object: when, who, how strict, and whether it is meant.

use super::{Answer, Done, Moment, Request};
use crate::chance::Chance;
use crate::invalid::FieldErrors;
use crate::kinds::{Kind, Scene};
use crate::status::Status;
use crate::store::Store;
use bindery_fields::Validation;
use bytes::Bytes;
use jiff::Timestamp;

/// One write on its way.
#[derive(Debug)]
pub struct Call<'a> {
    pub request: &'a Request,
    pub kind: &'static Kind,
    pub now: Timestamp,
    pub chance: Chance,
    /// Whether nothing is to be kept of it.
    pub dry_run: bool,
    pub manager: String,
    pub warnings: Vec<String>,
}

impl<'a> Call<'a> {
    /// Looks at the options of a write.
    pub fn new(moment: &Moment, request: &'a Request, options_kind: &str) -> Result<Self, Status> {
        let options = &request.options;
        let mut flaws = FieldErrors::default();
        let apply = options_kind == "PatchOptions" && request.verb == super::Verb::Patch(super::PatchType::Apply);
        if apply && options.field_manager.is_empty() {
            flaws.required("fieldManager", "is required for apply patch");
        } else if options.force.is_some() && !apply {
            flaws.forbidden("force", "may not be specified for non-apply patch");
        }
        if options.field_manager.len() > 128 {
            flaws.too_long("fieldManager", 128);
        } else if let Some((place, letter)) =
            options.field_manager.char_indices().find(|(_, letter)| letter.is_control())
        {
            let why = format!("invalid character U+{:04X} (at position {place})", u32::from(letter));
            flaws.invalid_text("fieldManager", &bindery_fields::decode::go_quoted(&options.field_manager), &why);
        }
        check_dry_run(&options.dry_run, &mut flaws);
        if !matches!(options.field_validation.as_str(), "" | "Ignore" | "Warn" | "Strict") {
            flaws.unsupported("fieldValidation", options.field_validation.as_str(), &["", "Ignore", "Strict", "Warn"]);
        }
        flaws.refuse_as("meta.k8s.io", options_kind, "")?;
        Ok(Self {
            request,
            kind: request.target.kind,
            now: moment.now,
            chance: Chance::new(moment.seed),
            dry_run: !options.dry_run.is_empty(),
            manager: manager(request),
            warnings: Vec::new(),
        })
    }

    /// The time to the second, as objects show it.
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

    pub fn scene<'s>(&'s self, store: &'s Store) -> Scene<'s> {
        Scene { now: self.now, store, kind: self.kind, subresource: self.subresource() }
    }

    /// The answer, with what was to be warned of.
    pub fn answer(&mut self, code: u16, body: Done, revision: u64) -> Answer {
        Answer { code, body, warnings: std::mem::take(&mut self.warnings), revision }
    }

    pub fn show(&mut self, code: u16, object: &Bytes, revision: u64) -> Answer {
        let body = Done::Object(super::show(self.kind, object));
        self.answer(code, body, revision)
    }

    /// A body names an object by a UID that is not the one which is there.
    pub fn other_object(&self, name: &str, said: &str, live: &str) -> Status {
        self.unmet(name, "UID", said, live)
    }

    /// A body says of an object what is not so.
    pub fn unmet(&self, name: &str, field: &str, said: &str, live: &str) -> Status {
        // Upstream keeps nodes under the name that they first had, and looks for what is not meant without the common prefix.
        let space = if self.kind.space == "nodes" { "minions" } else { self.kind.space };
        let prefix = if self.dry_run { "" } else { "/registry" };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {prefix}/{space}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: {field} in precondition: {said}, {field} in object meta: {live}",
            super::key_of(&self.request.target.namespace, name),
        );
        Status::conflict(self.kind, name, &why)
    }

    /// Warns of something, once.
    pub fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A time to the second, as objects show it.
pub fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Refuses dry runs of another kind than `All`.
pub fn check_dry_run(dry_run: &[String], flaws: &mut FieldErrors) {
    if dry_run.iter().any(|one| one != "All") {
        flaws.unsupported("dryRun", dry_run.to_vec(), &["All"]);
    }
}

/// Who owns what this request writes.
fn manager(request: &Request) -> String {
    if !request.options.field_manager.is_empty() {
        return request.options.field_manager.clone();
    }
    let agent = request.user_agent.split('/').next().unwrap_or_default();
    let printable: String = agent.chars().filter(|letter| !letter.is_control()).take(128).collect();
    if printable.is_empty() { "unknown".to_owned() } else { printable }
}
