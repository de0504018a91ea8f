//! Reading and patching objects while storage is prepared or deleted.

use std::sync::Arc;

use bindery_runtime::Api;
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use serde_json::Value;

use crate::facts::{Patch, ReadResult, WriteResult};

/// Reads and patches objects: the API server, or a map in tests.
pub trait ObjectClient: Send + Sync + 'static {
    /// Reads the object at a path.
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, ReadResult>;
    /// Patches an object, unless it has changed since it was read.
    fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, WriteResult>;
}

/// The API server.
pub struct ApiObjects(pub Arc<Api>);

impl ObjectClient for ApiObjects {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, ReadResult> {
        Box::pin(async move {
            let request = match Request::get(path).body(Vec::new()) {
                Ok(request) => request,
                Err(error) => return ReadResult::Failed(error.to_string()),
            };
            match self.0.call(request).await {
                Ok(reply) if reply.status.is_success() => match serde_json::from_slice(&reply.body) {
                    Ok(object) => ReadResult::Object(object),
                    Err(error) => ReadResult::Failed(error.to_string()),
                },
                Ok(reply) if reply.status == StatusCode::NOT_FOUND => ReadResult::Missing(reply.message()),
                Ok(reply) => ReadResult::Failed(reply.message()),
                Err(lost) => ReadResult::Failed(lost.0),
            }
        })
    }

    fn patch<'a>(&'a self, patch: &'a Patch) -> BoxFuture<'a, WriteResult> {
        Box::pin(async move {
            let request = Request::patch(&patch.path)
                .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                .body(patch.body.to_string().into_bytes());
            let request = match request {
                Ok(request) => request,
                Err(error) => return WriteResult::Failed(error.to_string()),
            };
            match self.0.call(request).await {
                Ok(reply) if reply.status.is_success() => match serde_json::from_slice::<Value>(&reply.body) {
                    Ok(object) => WriteResult::Object(object),
                    Err(error) => WriteResult::Failed(error.to_string()),
                },
                Ok(reply) if reply.status == StatusCode::FORBIDDEN => WriteResult::Forbidden(reply.message()),
                Ok(reply) if reply.status == StatusCode::CONFLICT => WriteResult::Conflict(reply.message()),
                Ok(reply) => WriteResult::Failed(reply.message()),
                Err(lost) => WriteResult::Failed(lost.0),
            }
        })
    }
}
