//! A server, and plain HTTP requests to it.

use std::path::Path;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How long to wait for a response. The longest that a shape expects is a watch of a few seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// A server and its clients. Only the transport is kube's; requests and responses are not
/// interpreted.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    /// A client without credentials.
    anonymous: Client,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status line's code.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

/// A response whose headers have arrived.
pub struct Pending(Response<Body>);

impl Endpoint {
    /// The server of the kubeconfig's current context.
    pub async fn of(kubeconfig: &Path) -> Result<Endpoint, String> {
        let of_file = |error: kube::config::KubeconfigError| format!("{}: {error}", kubeconfig.display());
        let file = Kubeconfig::read_from(kubeconfig).map_err(of_file)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(of_file)?;
        // Every response is compared, so there are no retries and no read timeout.
        config.default_retry = false;
        config.read_timeout = None;
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        let client = |config| Client::try_from(config).map_err(|error| format!("{}: {error}", kubeconfig.display()));
        Ok(Endpoint { client: client(config)?, anonymous: client(anonymous)? })
    }

    /// Sends a request, and returns when the headers of the response arrive.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Pending, String> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).map_err(|error| format!("{path}: {error}"))?;
        // A request with its own credentials must not send others.
        let client = if request.headers().contains_key(AUTHORIZATION) { &self.anonymous } else { &self.client };
        match tokio::time::timeout(DEADLINE, client.send(request)).await {
            Ok(Ok(response)) => Ok(Pending(response)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {DEADLINE:?}")),
        }
    }
}

impl Pending {
    /// Waits for the whole response.
    pub async fn finish(self) -> Result<Answer, String> {
        let (parts, body) = self.0.into_parts();
        match tokio::time::timeout(DEADLINE, body.collect_bytes()).await {
            Ok(Ok(body)) => Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_vec() }),
            Ok(Err(error)) => Err(format!("status {}, then {error}", parts.status)),
            Err(_) => Err(format!("status {}, then no end within {DEADLINE:?}", parts.status)),
        }
    }
}
