//! The caller: turns each of the engine's requests into API calls, and always returns an answer.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Answer, RequestError};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Bind, Create, Delete, Listing, PatchType, Request, Write};
use http::StatusCode;
use jiff::Timestamp;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request as Call;

use crate::api::{Api, Lost, Reply};
use crate::events::wire_time;
use crate::list;
use crate::operation::RunOperation;
use crate::records::Records;

/// The delay when an overloaded server sends no Retry-After.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Sends the engine's requests.
#[derive(Clone)]
pub struct Caller {
    api: Arc<Api>,
    worker: Arc<dyn RunOperation>,
    records: Option<Records>,
}

impl Caller {
    /// A caller for an API server. Operations are run by the worker.
    pub fn new(api: Arc<Api>, worker: Arc<dyn RunOperation>) -> Caller {
        Caller { api, worker, records: None }
    }

    /// Stores provisioning records there.
    #[must_use]
    pub fn with_records(mut self, records: Option<Records>) -> Caller {
        self.records = records;
        self
    }

    /// Cancels the requests that wait for the rate limit.
    pub(crate) fn cancel_waiting(&self) {
        self.api.cancel_waiting();
    }

    /// Sends a request and returns the answer.
    pub async fn send(&self, request: Request) -> Answer {
        if let Some(records) = self.records.as_ref().filter(|_| is_about_record(&request)) {
            return records.send(&request).await;
        }
        match request {
            Request::Write(write) => self.write(&write).await,
            Request::Create(create) => self.create(&create).await,
            Request::Bind(bind) => self.bind(&bind).await,
            Request::Delete(delete) => self.delete(&delete).await,
            Request::Read(key) => self.read(&key).await,
            Request::List(listing) => self.list(&listing).await,
            Request::RunOperation(operation) => Answer::Done(self.worker.run(operation).await),
        }
    }

    async fn write(&self, write: &Write) -> Answer {
        let key = write.target();
        let call = Call::new(key.collection_path());
        let params = PatchParams::default();
        let patch = write.patch(&wire_time(Timestamp::now()));
        let patch = match write.edit().patch_type() {
            PatchType::Merge => Patch::Merge(patch),
            PatchType::Strategic => Patch::Strategic(patch),
        };
        let request = match write.edit().subresource() {
            None => call.patch(&key.name, &params, &patch),
            Some(subresource) => call.patch_subresource(subresource, &key.name, &params, &patch),
        };
        self.object(key, request).await
    }

    async fn create(&self, create: &Create) -> Answer {
        let body = create.body.to_string().into_bytes();
        let request = Call::new(create.key.collection_path()).create(&PostParams::default(), body);
        self.object(&create.key, request).await
    }

    /// Binds a pod to a node. The response does not contain the pod, so it is read afterwards.
    async fn bind(&self, bind: &Bind) -> Answer {
        let key = bind.target();
        let body = bind.body().to_string().into_bytes();
        let path = format!("{}/{}/binding", key.collection_path(), key.name);
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json").body(body);
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        match self.call(request).await {
            Err(error) => Answer::Rejected(error),
            Ok(_) => match self.read(key).await {
                Answer::Read(Some(pod)) => Answer::Written(pod),
                // The binding succeeded, but the pod is unknown: the engine reads it again.
                Answer::Written(_)
                | Answer::Deleted(_)
                | Answer::Read(None)
                | Answer::Listed(_)
                | Answer::Done(_)
                | Answer::Rejected(_) => Answer::Rejected(RequestError::Lost),
            },
        }
    }

    async fn delete(&self, delete: &Delete) -> Answer {
        let volume = delete.proof().volume();
        let key = ObjectKey::volume(volume.name.clone());
        let preconditions =
            Preconditions { uid: Some(volume.uid.to_string()), resource_version: Some(volume.version.to_string()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.call(Call::new(key.collection_path()).delete(&key.name, &params)).await {
            Err(error) => Answer::Rejected(error),
            // The response is the object while it has finalizers, and a Status once it is deleted.
            Ok(reply) => Answer::Deleted(decode(&key, &reply).ok().filter(|object| object.meta().uid == volume.uid)),
        }
    }

    async fn read(&self, key: &ObjectKey) -> Answer {
        let request = Call::new(key.collection_path()).get(&key.name, &GetParams::default());
        match self.call(request).await {
            Err(RequestError::NotFound) => Answer::Read(None),
            Err(error) => Answer::Rejected(error),
            Ok(reply) => match decode(key, &reply) {
                Ok(object) => Answer::Read(Some(object)),
                Err(error) => Answer::Rejected(RequestError::Error(0, error)),
            },
        }
    }

    /// Lists all objects in pages. Without a resourceVersion, the result is no older than the
    /// request.
    async fn list(&self, listing: &Listing) -> Answer {
        let mut objects = Vec::new();
        let mut params = ListParams { limit: Some(list::PAGE), ..ListParams::default() };
        loop {
            let request = Call::new(listing.target().collection_path()).list(&params);
            let reply = match self.call(request).await {
                Ok(reply) => reply,
                Err(error) => return Answer::Rejected(error),
            };
            let next = match list::read_page(listing.kind, &reply.body, &mut objects) {
                Ok((_, next)) => next,
                Err(error) => return Answer::Rejected(RequestError::Error(0, error)),
            };
            if next.is_empty() {
                return Answer::Listed(objects);
            }
            params.continue_token = Some(next);
        }
    }

    /// A call whose response is the changed object.
    async fn object(&self, key: &ObjectKey, request: Built) -> Answer {
        match self.call(request).await {
            Err(error) => Answer::Rejected(error),
            Ok(reply) => match decode(key, &reply) {
                Ok(object) => Answer::Written(object),
                // The request succeeded, but the response cannot be parsed.
                Err(error) => Answer::Rejected(RequestError::Unknown(reply.status.as_u16(), error)),
            },
        }
    }

    async fn call(&self, request: Built) -> Result<Reply, RequestError> {
        let request = request.map_err(|error| RequestError::Error(0, error.to_string()))?;
        let may_have_changed = request.method() != http::Method::GET;
        match self.api.call(request).await {
            Err(Lost(error)) => Err(RequestError::Unknown(0, error)),
            Ok(reply) if reply.status.is_success() => Ok(reply),
            Ok(reply) => Err(request_error(&reply, may_have_changed)),
        }
    }
}

/// Whether a request reads or writes a provisioning record. Operations are about claims.
fn is_about_record(request: &Request) -> bool {
    !matches!(request, Request::RunOperation(_)) && request.target().kind == Kind::Record
}

type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// The meaning of an error response.
pub(crate) fn request_error(reply: &Reply, may_have_changed: bool) -> RequestError {
    match reply.status {
        StatusCode::NOT_FOUND => RequestError::NotFound,
        StatusCode::CONFLICT if reply.reason() == "AlreadyExists" => RequestError::AlreadyExists,
        StatusCode::CONFLICT => RequestError::Conflict,
        StatusCode::TOO_MANY_REQUESTS => {
            RequestError::RetryAfter(reply.retry_after.unwrap_or(DEFAULT_RETRY_AFTER), reply.message())
        }
        // The server may have carried out the request before it failed.
        status if status.is_server_error() && may_have_changed => {
            RequestError::Unknown(status.as_u16(), reply.message())
        }
        status => match reply.retry_after {
            Some(retry_after) => RequestError::RetryAfter(retry_after, reply.message()),
            None => RequestError::Error(status.as_u16(), reply.message()),
        },
    }
}

fn decode(key: &ObjectKey, reply: &Reply) -> Result<Object, String> {
    Object::from_json(key.kind, &reply.body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_are_classified() {
        let reply = |status: u16, reason: &str, retry_after: Option<u64>| Reply {
            status: StatusCode::from_u16(status).expect("a status"),
            retry_after: retry_after.map(Duration::from_secs),
            body: format!(r#"{{"kind":"Status","reason":"{reason}","message":"why"}}"#).into_bytes().into(),
        };
        let cases = [
            (reply(404, "NotFound", None), true, RequestError::NotFound),
            (reply(409, "AlreadyExists", None), true, RequestError::AlreadyExists),
            (reply(409, "Conflict", None), true, RequestError::Conflict),
            (
                reply(429, "TooManyRequests", Some(3)),
                true,
                RequestError::RetryAfter(Duration::from_secs(3), "why".into()),
            ),
            (reply(504, "Timeout", None), true, RequestError::Unknown(504, "why".into())),
            (reply(500, "InternalError", None), false, RequestError::Error(500, "why".into())),
            (
                reply(503, "ServiceUnavailable", Some(2)),
                false,
                RequestError::RetryAfter(Duration::from_secs(2), "why".into()),
            ),
            (reply(403, "Forbidden", None), true, RequestError::Error(403, "why".into())),
            (reply(422, "Invalid", None), true, RequestError::Error(422, "why".into())),
        ];
        for (reply, may_have_changed, expected) in cases {
            assert_eq!(request_error(&reply, may_have_changed), expected, "{}", reply.status);
        }
    }
}
