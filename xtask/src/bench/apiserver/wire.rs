//! A cheap connection: HTTP/1.1 over TLS, one request at a time, decoding only what the next write
//! needs.

use std::path::Path;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls_pki_types::ServerName;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The address and credentials of a server.
#[derive(Clone)]
pub struct Endpoint {
    address: String,
    name: ServerName<'static>,
    tls: TlsConnector,
    authorization: Option<String>,
}

impl Endpoint {
    /// Reads a kubeconfig.
    pub async fn of(kubeconfig: &Path) -> Result<Endpoint, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", kubeconfig.display());
        let file = Kubeconfig::read_from(kubeconfig).map_err(|error| wrong(&error))?;
        let token = file.auth_infos.first().and_then(|user| user.auth_info.as_ref()?.token.clone());
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await.map_err(|error| wrong(&error))?;
        let host = config.cluster_url.host().ok_or_else(|| wrong(&"the server has no host"))?.to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        let tls = config.rustls_client_config().map_err(|error| wrong(&error))?;
        Ok(Endpoint {
            address: format!("{host}:{port}"),
            name: ServerName::try_from(host).map_err(|error| wrong(&error))?,
            tls: TlsConnector::from(Arc::new(tls)),
            authorization: token.map(|token| format!("Bearer {}", token.expose_secret())),
        })
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Wire, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.address);
        let socket = TcpStream::connect(&self.address).await.map_err(|error| failed(&error))?;
        socket.set_nodelay(true).map_err(|error| failed(&error))?;
        let socket = self.tls.connect(self.name.clone(), socket).await.map_err(|error| failed(&error))?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await.map_err(|error| failed(&error))?;
        tokio::spawn(connection);
        Ok(Wire { sender, host: self.address.clone(), authorization: self.authorization.clone() })
    }
}

/// A connection.
pub struct Wire {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    authorization: Option<String>,
}

/// The part of an object's metadata that the next write needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
}

#[derive(Deserialize)]
struct Object {
    metadata: Meta,
}

impl Wire {
    /// Sends a request and returns the body of a successful response.
    pub async fn send(&mut self, method: &str, path: &str, content: &str, body: String) -> Result<Bytes, String> {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(hyper::header::HOST, &self.host)
            .header(hyper::header::CONTENT_TYPE, content);
        if let Some(authorization) = &self.authorization {
            request = request.header(hyper::header::AUTHORIZATION, authorization);
        }
        let failed = |error: &dyn std::fmt::Display| format!("{method} {path}: {error}");
        let request = request.body(Full::new(body.into())).map_err(|error| failed(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
        if status.is_success() { Ok(body) } else { Err(failed(&String::from_utf8_lossy(&body))) }
    }

    /// Creates an object.
    pub async fn create(&mut self, path: &str, object: &Value) -> Result<Meta, String> {
        meta(&self.send("POST", path, "application/json", object.to_string()).await?)
    }

    /// Patches an object, conditional on its resourceVersion.
    pub async fn patch(&mut self, path: &str, patch: &Value) -> Result<Meta, String> {
        meta(&self.send("PATCH", path, "application/merge-patch+json", patch.to_string()).await?)
    }
}

fn meta(body: &[u8]) -> Result<Meta, String> {
    serde_json::from_slice::<Object>(body).map(|object| object.metadata).map_err(|error| error.to_string())
}
