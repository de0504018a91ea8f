//! Requests and answers.

use crate::kinds::Kind;
use crate::status::Status;
use bytes::Bytes;
use jiff::Timestamp;

/// When a request comes, and the chance it is given: names and UIDs derive from it alone.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// Never the same twice; all UIDs and generated names of this request derive from it.
    pub seed: u128,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is to be done.
    pub verb: Verb,
    /// With what.
    pub target: Target,
    /// How.
    pub options: Options,
    /// The body as it came; empty if there is none.
    pub body: Body,
    /// The client's `User-Agent`: who owns the fields it writes, unless `options.field_manager` says.
    pub user_agent: String,
}

/// What is to be done. Watching is [`crate::Api::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one.
    Patch(PatchType),
    /// Delete one.
    Delete,
    /// Delete many.
    DeleteCollection,
}

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/apply-patch+yaml`
    Apply,
}

/// What a request is about.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its kind, in the version that the path names.
    pub kind: &'static Kind,
    /// The namespace in the path; empty for all of them, and for kinds without.
    pub namespace: String,
    /// The name in the path; empty for the collection.
    pub name: String,
    /// The subresource in the path; empty for the object itself.
    pub subresource: String,
}

/// A body as it came.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// How they are written.
    pub format: Format,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

/// The query parameters, as they came: what makes no sense is refused with the wording of upstream.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `resourceVersion`
    pub resource_version: String,
    /// `resourceVersionMatch`
    pub resource_version_match: String,
    /// `limit`
    pub limit: i64,
    /// `continue`
    pub continue_token: String,
    /// `labelSelector`
    pub label_selector: String,
    /// `fieldSelector`
    pub field_selector: String,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`
    pub allow_watch_bookmarks: bool,
    /// `fieldManager`
    pub field_manager: String,
    /// `fieldValidation`
    pub field_validation: String,
    /// `force`
    pub force: Option<bool>,
    /// `dryRun`, once for each time it was given
    pub dry_run: Vec<String>,
    /// `gracePeriodSeconds`: counts only for a delete without a body, as the next two
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`
    pub propagation_policy: Option<String>,
    /// `orphanDependents`
    pub orphan_dependents: Option<bool>,
}

/// What a request that was not refused is answered with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status code: 200, 201 or 202.
    pub code: u16,
    /// The body.
    pub body: Done,
    /// To be sent as `Warning` headers, in this order.
    pub warnings: Vec<String>,
    /// The latest revision that this tells of. Whoever persists must have persisted this much before the answer is sent.
    pub revision: u64,
}

/// The body of an [`Answer`].
#[derive(Debug, Clone)]
pub enum Done {
    /// One object, encoded, with kind and apiVersion.
    Object(Bytes),
    /// Many.
    List(List),
    /// No object to show.
    Status(Box<Status>),
}

/// Many objects of one kind.
#[derive(Debug, Clone)]
pub struct List {
    /// Their kind.
    pub kind: &'static Kind,
    /// The revision at which they were so.
    pub revision: u64,
    /// Where to go on.
    pub continue_token: Option<String>,
    /// How many are left after this page.
    pub remaining: Option<u64>,
    /// Each as a whole, encoded, with kind and apiVersion; see [`List::encode`].
    pub items: Vec<Bytes>,
    /// The class that a table is to mark as the default.
    pub default_class: Option<String>,
}
