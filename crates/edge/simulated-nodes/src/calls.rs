//! Calls of the API server, so many at a time.

use std::fmt;
use std::sync::Arc;

use bindery_runtime::Api;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// How many calls are under way at most. All nodes share a connection with the controllers, and a thousand nodes that begin at
/// once shall not keep them waiting.
const AT_ONCE: usize = 32;

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is no such object.
    NotFound,
    /// The object is another, or another state of it, than the call was made for; or it is there already.
    Conflict,
    /// Anything else, in words.
    Error(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotFound => f.write_str("there is no such object"),
            Refused::Conflict => f.write_str("the object has changed meanwhile"),
            Refused::Error(error) => f.write_str(error),
        }
    }
}

/// How a patch is put into an object.
#[derive(Debug, Clone, Copy)]
pub enum Patch {
    /// Field by field; lists as a whole.
    Merge,
    /// Lists too by the keys of their entries.
    Strategic,
}

/// An API server that is called by all simulated nodes.
pub struct Calls {
    api: Arc<Api>,
    turns: Semaphore,
}

impl Calls {
    /// The calls of an API server.
    pub fn new(api: Arc<Api>) -> Calls {
        Calls { api, turns: Semaphore::new(AT_ONCE) }
    }

    /// The API server.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Reads an object, or a list.
    pub async fn read(&self, path: &str) -> Result<Value, Refused> {
        self.call(Method::GET, path, "application/json", &Value::Null).await
    }

    /// Makes an object.
    pub async fn make(&self, collection: &str, object: &Value) -> Result<Value, Refused> {
        self.call(Method::POST, collection, "application/json", object).await
    }

    /// Patches an object if it is as it was seen: the very one, in the very state.
    pub async fn patch(&self, path: &str, seen: &Value, patch: Patch, mut change: Value) -> Result<Value, Refused> {
        for field in ["uid", "resourceVersion"] {
            change["metadata"][field] = seen["metadata"][field].clone();
        }
        let content = match patch {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        };
        self.call(Method::PATCH, path, content, &change).await
    }

    /// Takes the very pod away, with no more time of grace.
    pub async fn remove_pod(&self, path: &str, uid: &str) -> Result<Value, Refused> {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        self.call(Method::DELETE, path, "application/json", &options).await
    }

    async fn call(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value, Refused> {
        let error = |error: &dyn fmt::Display| Refused::Error(error.to_string());
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content);
        let request = request.body(body).map_err(|wrong| error(&wrong))?;
        let _turn = self.turns.acquire().await.map_err(|closed| error(&closed))?;
        let reply = self.api.call(request).await.map_err(|lost| Refused::Error(lost.0))?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(Refused::NotFound),
            StatusCode::CONFLICT => Err(Refused::Conflict),
            status if status.is_success() => serde_json::from_slice(&reply.body).map_err(|wrong| error(&wrong)),
            _ => Err(Refused::Error(reply.message())),
        }
    }
}

/// This moment, as the API writes it.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
