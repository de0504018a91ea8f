//! How objects are read and written while storage is being prepared or removed.

use std::sync::Arc;

use bindery_runtime::Api;
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use serde_json::Value;

use crate::facts::{Found, Patch, Wrote};

/// Whoever has the objects: an API server, or a map in tests.
pub trait Look: Send + Sync + 'static {
    /// What is at a path, live.
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Found>;
    /// Writes, if the object is still as it was seen.
    fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, Wrote>;
}

/// An API server.
pub struct Server(pub Arc<Api>);

impl Look for Server {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            let request = match Request::get(path).body(Vec::new()) {
                Ok(request) => request,
                Err(error) => return Found::Failed(error.to_string()),
            };
            match self.0.call(request).await {
                Ok(reply) if reply.status.is_success() => match serde_json::from_slice(&reply.body) {
                    Ok(object) => Found::Object(object),
                    Err(error) => Found::Failed(error.to_string()),
                },
                Ok(reply) if reply.status == StatusCode::NOT_FOUND => Found::Missing(reply.message()),
                Ok(reply) => Found::Failed(reply.message()),
                Err(lost) => Found::Failed(lost.0),
            }
        })
    }

    fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, Wrote> {
        Box::pin(async move {
            let request = Request::patch(&patch.path)
                .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                .body(patch.body.to_string().into_bytes());
            let request = match request {
                Ok(request) => request,
                Err(error) => return Wrote::Failed(error.to_string()),
            };
            match self.0.call(request).await {
                Ok(reply) if reply.status.is_success() => match serde_json::from_slice::<Value>(&reply.body) {
                    Ok(object) => Wrote::Object(object),
                    Err(error) => Wrote::Failed(error.to_string()),
                },
                Ok(reply) if reply.status == StatusCode::FORBIDDEN => Wrote::Forbidden(reply.message()),
                Ok(reply) if reply.status == StatusCode::CONFLICT => Wrote::Changed(reply.message()),
                Ok(reply) => Wrote::Failed(reply.message()),
                Err(lost) => Wrote::Failed(lost.0),
            }
        })
    }
}
