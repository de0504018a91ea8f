//! Status bodies: the answers to rejected requests, and to requests that return no object.

use crate::kinds::Kind;
use serde::{Serialize, Serializer};

/// The answer to a rejected request, and to a delete of kinds that do not return the deleted
/// object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    kind: KindOf,
    #[serde(rename = "apiVersion")]
    api_version: VersionOf,
    /// Only has a continue token, if it replaces an expired one.
    pub metadata: StatusMeta,
    /// `Success` or `Failure`.
    pub status: &'static str,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For programs; empty for a success.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// The object, and the causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP status code; `None` for a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Sent as `Warning` headers: a request can have warnings and be rejected.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// The constant `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KindOf;

impl Serialize for KindOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("Status")
    }
}

/// The constant `apiVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VersionOf;

impl Serialize for VersionOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("v1")
    }
}

/// The metadata of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusMeta {
    /// The token that replaces the expired one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// The object that a [`Status`] is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its resource, or its kind if the object is invalid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its UID, after a delete.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The individual errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to retry; also sent as a header.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One of several errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// For programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field with the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// A failure.
    pub fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: KindOf,
            api_version: VersionOf,
            metadata: StatusMeta::default(),
            status: "Failure",
            message: message.into(),
            reason,
            details: None,
            code: Some(code),
            warnings: Vec::new(),
        }
    }

    /// A success without an object.
    pub fn success(details: Option<Details>) -> Self {
        Self { status: "Success", code: None, details: details.map(Box::new), ..Self::failure(200, "", "") }
    }

    /// Adds details.
    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The HTTP status code of the response.
    pub fn http_code(&self) -> u16 {
        self.code.unwrap_or(200)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        let causes = vec![Cause { reason: String::new(), message: text.clone(), field: String::new() }];
        Self::failure(500, "InternalError", format!("Internal error occurred: {text}"))
            .with(Details { causes, ..Details::default() })
    }

    /// 410: history no longer has the requested revision.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    /// 504: the requested revision is in the future.
    pub fn too_large_revision(wanted: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: Some(1), ..Details::default() };
        Self::failure(504, "Timeout", format!("Timeout: Too large resource version: {wanted}, current: {current}"))
            .with(details)
    }

    /// Whether this is [`Status::too_large_revision`]: the caller may wait for the revision and
    /// retry.
    pub fn is_too_large_revision(&self) -> bool {
        self.reason == "Timeout"
            && self.details.as_ref().is_some_and(|d| d.causes.iter().any(|c| c.reason == "ResourceVersionTooLarge"))
    }
}

/// Failures about an object.
impl Status {
    fn about(kind: &Kind, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.plural.to_owned(),
            ..Details::default()
        }
    }

    /// 404.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::failure(404, "NotFound", format!("{} \"{name}\" not found", kind.resource()))
            .with(Self::about(kind, name))
    }

    /// 403.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let object = if name.is_empty() { kind.resource() } else { format!("{} \"{name}\"", kind.resource()) };
        Self::failure(403, "Forbidden", format!("{object} is forbidden: {why}")).with(Self::about(kind, name))
    }

    /// 409: the object exists.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::failure(409, "AlreadyExists", format!("{} \"{name}\" already exists", kind.resource()))
            .with(Self::about(kind, name))
    }

    /// 409: the object is not in the state that the client expects.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
        Self::failure(409, "Conflict", message).with(Self::about(kind, name))
    }

    /// 409: the object was changed since the client read it.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 405.
    pub fn not_allowed() -> Self {
        Self::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with(Details::default())
    }

    /// 404: the path does not exist.
    pub fn no_such_path() -> Self {
        Self::failure(404, "NotFound", "the server could not find the requested resource").with(Details::default())
    }
}
