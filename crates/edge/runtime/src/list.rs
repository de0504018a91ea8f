//! Listing the objects of a kind in pages.

use bindery_model::{Kind, Object};
use http::StatusCode;
use kube::api::ListParams;
use kube::core::request::Request as Call;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::Api;

/// The page size: large enough to be fast, small enough for pages of large objects.
pub const PAGE: u32 = 500;

/// An object as received. It is decoded into the fields that rules read; the rest is dropped.
pub type Raw = Box<RawValue>;

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

/// Why a kind could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListError {
    /// The server does not serve the kind.
    NotServed,
    /// The server refuses: 401 or 403.
    Refused(String),
    /// Any other error.
    Error(String),
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ListError::NotServed => f.write_str("the server does not serve this kind"),
            ListError::Refused(error) | ListError::Error(error) => f.write_str(error),
        }
    }
}

/// Whether a server may not serve a kind, because it is older or the API is disabled. For every
/// other kind, a 404 is an error and never means that there are no objects.
pub fn is_optional(kind: Kind) -> bool {
    kind == Kind::AttributesClass
}

/// Lists all objects of a kind. Returns the list's resourceVersion and the objects.
pub async fn list(api: &Api, kind: Kind) -> Result<(String, Vec<Object>), ListError> {
    let mut objects = Vec::new();
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    loop {
        let request = Call::new(kind.path()).list(&params).map_err(|error| ListError::Error(error.to_string()))?;
        let reply = api.call(request).await.map_err(|lost| ListError::Error(lost.0))?;
        match reply.status {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND => return Err(ListError::NotServed),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(ListError::Refused(reply.message())),
            _ => return Err(ListError::Error(reply.message())),
        }
        let (version, next) = read_page(kind, &reply.body, &mut objects).map_err(ListError::Error)?;
        if next.is_empty() {
            return Ok((version, objects));
        }
        params.continue_token = Some(next);
    }
}

/// Parses a page. Returns the list's resourceVersion, and the continue token or an empty string.
pub fn read_page(kind: Kind, body: &[u8], objects: &mut Vec<Object>) -> Result<(String, String), String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    objects.extend(page.items.iter().filter_map(|raw| decode(kind, raw)));
    Ok((page.metadata.resource_version, page.metadata.r#continue))
}

/// Decodes an object. One without a name is logged and skipped, so that it does not block the
/// others.
pub fn decode(kind: Kind, raw: &RawValue) -> Option<Object> {
    Object::from_json(kind, raw.get().as_bytes())
        .inspect_err(|error| tracing::warn!(kind = kind.as_str(), %error, "object without a name skipped"))
        .ok()
}
