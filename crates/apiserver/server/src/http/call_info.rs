//! What a request is about, for metrics and the audit log.

use http::Method;

use super::path::{Path, ResourcePath};
use super::query::{Query, go_bool};

/// The verb of a request, as upstream names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallVerb {
    /// Read one object, or a document.
    Get,
    /// Read a collection.
    List,
    /// Watch.
    Watch,
    /// Create.
    Create,
    /// Replace.
    Update,
    /// Patch.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// Any other method.
    Other,
}

impl CallVerb {
    /// The verb of a method at a path.
    pub fn of(method: &Method, path: &Path<'_>, query: Option<&str>) -> CallVerb {
        let resource = path.resource();
        let is_collection = resource.is_some_and(|resource| resource.name.is_empty());
        match *method {
            Method::GET | Method::HEAD if resource.is_some_and(|resource| is_watch(resource, query)) => CallVerb::Watch,
            Method::GET | Method::HEAD if is_collection => CallVerb::List,
            Method::GET | Method::HEAD => CallVerb::Get,
            Method::POST => CallVerb::Create,
            Method::PUT => CallVerb::Update,
            Method::PATCH => CallVerb::Patch,
            Method::DELETE if is_collection => CallVerb::DeleteCollection,
            Method::DELETE => CallVerb::Delete,
            _ => CallVerb::Other,
        }
    }

    /// The verb in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            CallVerb::Get => "get",
            CallVerb::List => "list",
            CallVerb::Watch => "watch",
            CallVerb::Create => "create",
            CallVerb::Update => "update",
            CallVerb::Patch => "patch",
            CallVerb::Delete => "delete",
            CallVerb::DeleteCollection => "deletecollection",
            CallVerb::Other => "other",
        }
    }

    /// The verb in metrics.
    pub fn metric(self) -> &'static str {
        match self {
            CallVerb::Get => "GET",
            CallVerb::List => "LIST",
            CallVerb::Watch => "WATCH",
            CallVerb::Create => "POST",
            CallVerb::Update => "PUT",
            CallVerb::Patch => "PATCH",
            CallVerb::Delete => "DELETE",
            CallVerb::DeleteCollection => "DELETECOLLECTION",
            CallVerb::Other => "other",
        }
    }
}

fn is_watch(resource: &ResourcePath<'_>, query: Option<&str>) -> bool {
    let asked = || Query::new(query).get("watch").is_some_and(|value| go_bool(&value));
    resource.watch || resource.name.is_empty() && asked()
}
