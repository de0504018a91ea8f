//! A server, and plain HTTP to it.

use std::path::Path;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// An answer that is longer in coming is none. The longest that a shape asks for is a watch of a few seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// A server and how to reach it. Only the transport is kube's: requests and answers are plain.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    /// Without credentials of its own.
    stranger: Client,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status line's code.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

/// An answer that has begun.
pub struct Begun(Response<Body>);

impl Endpoint {
    /// The server of a kubeconfig's current context.
    pub async fn of(kubeconfig: &Path) -> Result<Endpoint, String> {
        let of_file = |error: kube::config::KubeconfigError| format!("{}: {error}", kubeconfig.display());
        let file = Kubeconfig::read_from(kubeconfig).map_err(of_file)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(of_file)?;
        // What a server answers is what is compared: nothing is tried again, and nothing given up early.
        config.default_retry = false;
        config.read_timeout = None;
        let mut stranger = config.clone();
        stranger.auth_info = AuthInfo::default();
        let client = |config| Client::try_from(config).map_err(|error| format!("{}: {error}", kubeconfig.display()));
        Ok(Endpoint { client: client(config)?, stranger: client(stranger)? })
    }

    /// Sends a request, and returns when the answer begins.
    pub async fn begin(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Begun, String> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body)).map_err(|error| format!("{path}: {error}"))?;
        // Whoever brings credentials is to be known by them alone.
        let client = if request.headers().contains_key(AUTHORIZATION) { &self.stranger } else { &self.client };
        match tokio::time::timeout(DEADLINE, client.send(request)).await {
            Ok(Ok(response)) => Ok(Begun(response)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer in {DEADLINE:?}")),
        }
    }
}

impl Begun {
    /// Waits for the answer's end.
    pub async fn finish(self) -> Result<Answer, String> {
        let (parts, body) = self.0.into_parts();
        match tokio::time::timeout(DEADLINE, body.collect_bytes()).await {
            Ok(Ok(body)) => Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_vec() }),
            Ok(Err(error)) => Err(format!("{} and then {error}", parts.status)),
            Err(_) => Err(format!("{} and then no end in {DEADLINE:?}", parts.status)),
        }
    }
}
