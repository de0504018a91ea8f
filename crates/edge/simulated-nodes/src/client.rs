//! API calls with limited concurrency.

use std::fmt;
use std::sync::Arc;

use bindery_runtime::Api;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The maximum number of concurrent calls. All nodes share a connection with the controllers, and a
/// thousand nodes that start at once must not delay them.
const CONCURRENT_CALLS_MAX: usize = 32;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The object does not exist.
    NotFound,
    /// The object was changed or replaced, or exists already.
    Conflict,
    /// Any other error.
    Error(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotFound => f.write_str("object not found"),
            CallError::Conflict => f.write_str("the object was changed in the meantime"),
            CallError::Error(error) => f.write_str(error),
        }
    }
}

/// The kind of a patch.
#[derive(Debug, Clone, Copy)]
pub enum Patch {
    /// Replaces lists.
    Merge,
    /// Merges lists by their keys.
    Strategic,
}

/// The API client of all simulated nodes.
pub struct ApiClient {
    api: Arc<Api>,
    permits: Semaphore,
}

impl ApiClient {
    /// Uses this API server.
    pub fn new(api: Arc<Api>) -> ApiClient {
        ApiClient { api, permits: Semaphore::new(CONCURRENT_CALLS_MAX) }
    }

    /// The API server.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Reads an object or a list.
    pub async fn read(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::GET, path, "application/json", &Value::Null).await
    }

    /// Creates an object.
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Value, CallError> {
        self.call(Method::POST, collection, "application/json", object).await
    }

    /// Patches an object, unless it was changed or replaced since it was read.
    pub async fn patch(&self, path: &str, seen: &Value, patch: Patch, mut change: Value) -> Result<Value, CallError> {
        for field in ["uid", "resourceVersion"] {
            change["metadata"][field] = seen["metadata"][field].clone();
        }
        let content = match patch {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        };
        self.call(Method::PATCH, path, content, &change).await
    }

    /// Deletes a pod without a grace period, if it has this UID.
    pub async fn remove_pod(&self, path: &str, uid: &str) -> Result<Value, CallError> {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        self.call(Method::DELETE, path, "application/json", &options).await
    }

    async fn call(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value, CallError> {
        let error = |error: &dyn fmt::Display| CallError::Error(error.to_string());
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content);
        let request = request.body(body).map_err(|invalid| error(&invalid))?;
        let _permit = self.permits.acquire().await.map_err(|closed| error(&closed))?;
        let reply = self.api.call(request).await.map_err(|lost| CallError::Error(lost.0))?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(CallError::NotFound),
            StatusCode::CONFLICT => Err(CallError::Conflict),
            status if status.is_success() => serde_json::from_slice(&reply.body).map_err(|invalid| error(&invalid)),
            _ => Err(CallError::Error(reply.message())),
        }
    }
}

/// The current time in the API's format.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
