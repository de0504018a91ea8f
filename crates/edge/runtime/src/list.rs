//! Listing a kind, page by page.

use bindery_model::{Kind, Object};
use http::StatusCode;
use kube::api::ListParams;
use kube::core::request::Request as Call;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::Api;

/// How many objects are listed at a time: enough to be quick, few enough that a page of large ones is not a burden.
pub const PAGE: u32 = 500;

/// An object as the server wrote it. Decoded once, into what rules read; the rest is never kept.
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

/// Why a kind was not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlisted {
    /// The server does not know the kind.
    NotServed,
    /// Anything else, in words.
    Error(String),
}

impl std::fmt::Display for Unlisted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unlisted::NotServed => f.write_str("the server does not serve this kind"),
            Unlisted::Error(error) => f.write_str(error),
        }
    }
}

/// Whether a cluster may do without a kind: one of an older version, or with the kind switched off. Of all others a server that
/// does not know them is broken, and is never taken at its word that there are none.
pub fn is_optional(kind: Kind) -> bool {
    kind == Kind::AttributesClass
}

/// Lists all objects of a kind, and the version that the list is of.
pub async fn list(api: &Api, kind: Kind) -> Result<(String, Vec<Object>), Unlisted> {
    let mut objects = Vec::new();
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    loop {
        let request = Call::new(kind.path()).list(&params).map_err(|error| Unlisted::Error(error.to_string()))?;
        let reply = api.call(request).await.map_err(|lost| Unlisted::Error(lost.0))?;
        match reply.status {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND => return Err(Unlisted::NotServed),
            _ => return Err(Unlisted::Error(reply.message())),
        }
        let (version, next) = read_page(kind, &reply.body, &mut objects).map_err(Unlisted::Error)?;
        if next.is_empty() {
            return Ok((version, objects));
        }
        params.continue_token = Some(next);
    }
}

/// Takes in a page. Returns the version that the list is of, and what to ask for the next page with; empty after the last.
pub fn read_page(kind: Kind, body: &[u8], objects: &mut Vec<Object>) -> Result<(String, String), String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    objects.extend(page.items.iter().filter_map(|raw| decode(kind, raw)));
    Ok((page.metadata.resource_version, page.metadata.r#continue))
}

/// Decodes an object. One without a name is left out, and said so; it stops nobody else.
pub fn decode(kind: Kind, raw: &RawValue) -> Option<Object> {
    Object::from_json(kind, raw.get().as_bytes())
        .inspect_err(|flaw| tracing::warn!(kind = kind.as_str(), %flaw, "an object cannot be read, and is left out"))
        .ok()
}
