//! An API server whose requests the test answers one by one.

use std::time::Duration;

use bindery_runtime::Api;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tower::BoxError;

/// Longer than any test takes: no call times out.
const DEADLINE: Duration = Duration::from_secs(600);

/// The requests of a client, in order.
pub struct Requests(UnboundedReceiver<Call>);

/// A request that waits for its response.
pub struct Call {
    /// The path and the query.
    pub uri: String,
    /// The body; null if there is none.
    pub body: Value,
    reply: oneshot::Sender<Response<Body>>,
}

/// A connection to a server, and the requests that it receives.
pub fn server() -> (Api, Requests) {
    server_with(None)
}

/// The same with a rate limit: calls a second, and burst.
pub fn server_with(rate: Option<(f64, f64)>) -> (Api, Requests) {
    let (send, requests) = unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let send = send.clone();
        async move {
            let (reply, answer) = oneshot::channel();
            let uri = request.uri().to_string();
            let bytes = request.into_body().collect_bytes().await?;
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            send.send(Call { uri, body, reply }).map_err(|_| BoxError::from("the test has ended"))?;
            answer.await.map_err(|_| BoxError::from("the connection was closed"))
        }
    });
    (Api::new(Client::new(service, "default"), DEADLINE, rate), Requests(requests))
}

impl Requests {
    /// Waits for the next request, which must contain these words in its path or query.
    pub async fn next(&mut self, expected: &str) -> Call {
        let call = self.0.recv().await.expect("the client runs");
        assert!(call.uri.contains(expected), "{} does not contain {expected}", call.uri);
        call
    }

    /// Whether no other request has been sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Call {
    /// Answers with lines of JSON.
    pub fn answer(self, status: u16, lines: &[Value]) {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let response = Response::builder().status(status).body(Body::from(body.into_bytes())).expect("a response");
        // The client may have given up.
        let _ = self.reply.send(response);
    }

    /// Waits until the client has cancelled the request.
    pub async fn cancelled(mut self) {
        self.reply.closed().await;
    }
}
