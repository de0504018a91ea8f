//! Listing a kind, page by page.

use bindery_volumes::{Kind, Object};
use kube::api::ListParams;
use kube::core::request::Request as Call;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::Api;
use crate::paths;

/// How many objects are listed at a time: enough to be quick, few enough that a page of large ones is not a burden.
const PAGE: u32 = 500;

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

/// Lists all objects of a kind, and the version that the list is of.
pub async fn list(api: &Api, kind: Kind) -> Result<(String, Vec<Object>), String> {
    let mut objects = Vec::new();
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    loop {
        let request = Call::new(paths::all(kind)).list(&params).map_err(|error| error.to_string())?;
        let reply = api.call(request).await.map_err(|lost| lost.0)?;
        if !reply.status.is_success() {
            return Err(reply.message());
        }
        let page: Page = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        objects.extend(page.items.iter().filter_map(|raw| decode(kind, raw)));
        if page.metadata.r#continue.is_empty() {
            return Ok((page.metadata.resource_version, objects));
        }
        params.continue_token = Some(page.metadata.r#continue);
    }
}

/// Decodes an object. One without a name is left out, and said so; it stops nobody else.
pub fn decode(kind: Kind, raw: &RawValue) -> Option<Object> {
    Object::from_json(kind, raw.get().as_bytes())
        .inspect_err(|flaw| tracing::warn!(kind = kind.as_str(), %flaw, "an object cannot be read, and is left out"))
        .ok()
}
