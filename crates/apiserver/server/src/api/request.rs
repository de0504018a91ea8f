//! Requests and answers.

use crate::kinds::Kind;
use crate::status::Status;
use bytes::Bytes;
use jiff::Timestamp;

/// The time of a request and a seed for its randomness. UIDs and generated names depend on nothing
/// else.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext {
    /// The time.
    pub now: Timestamp,
    /// Unique for each request. All UIDs and generated names of the request derive from it.
    pub seed: u128,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// The object or the collection.
    pub target: Target,
    /// The query parameters.
    pub options: Options,
    /// The body; empty if there is none.
    pub body: Body,
    /// The client's `User-Agent`, which names the field manager unless `options.field_manager` is
    /// set.
    pub user_agent: String,
}

/// What to do. For watches, see [`crate::Api::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object.
    Patch(PatchType),
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
}

/// The format of a patch.
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

/// The object or the collection of a request.
#[derive(Debug, Clone)]
pub struct Target {
    /// The kind, in the version of the path.
    pub kind: &'static Kind,
    /// The namespace of the path; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the path; empty for the collection.
    pub name: String,
    /// The subresource of the path; empty for the object itself.
    pub subresource: String,
}

/// The body of a request.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// Their format.
    pub format: Format,
}

/// The format of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

/// The query parameters, not yet validated: errors have upstream's wording.
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
    /// `dryRun`, once for each occurrence
    pub dry_run: Vec<String>,
    /// `gracePeriodSeconds`: like the next two, only used by a delete without a body
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`
    pub propagation_policy: Option<String>,
    /// `orphanDependents`
    pub orphan_dependents: Option<bool>,
}

/// The response to a successful request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status code: 200, 201 or 202.
    pub code: u16,
    /// The body.
    pub body: AnswerBody,
    /// Sent as `Warning` headers, in this order.
    pub warnings: Vec<String>,
    /// The latest revision that the answer depends on, which must be persisted before the answer is
    /// sent.
    pub revision: u64,
}

/// The body of an [`Answer`].
#[derive(Debug, Clone)]
pub enum AnswerBody {
    /// An encoded object, with kind and apiVersion.
    Object(Bytes),
    /// A list of objects.
    List(List),
    /// A status, where there is no object to return.
    Status(Box<Status>),
}

/// A list of objects of one kind.
#[derive(Debug, Clone)]
pub struct List {
    /// Their kind.
    pub kind: &'static Kind,
    /// The revision of the list.
    pub revision: u64,
    /// The token for the next page.
    pub continue_token: Option<String>,
    /// How many objects follow this page.
    pub remaining: Option<u64>,
    /// The encoded objects, with kind and apiVersion.
    pub items: Vec<Bytes>,
    /// The class that a table marks as the default.
    pub default_class: Option<String>,
}
