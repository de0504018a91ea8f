//! kube's client on an HTTP/2 transport.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use rustls_pki_types::ServerName;
use tower::{BoxError, ServiceBuilder};

/// HTTP/2 health checks as in client-go: all requests and watches share a connection, which may die
/// silently.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// A client for a cluster.
///
/// With HTTP/2, all requests and watches share one connection; kube's own transport opens one for
/// each request in flight. Requests are not retried here, because the engine decides again after a
/// failure.
pub fn client(config: Config) -> Result<Client, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot create a client: {error}");
    // Ignoring the proxy might bypass a policy. Like kubectl, the local host is reached without it.
    if let Some(proxy) = config.proxy_url.as_ref().filter(|_| !is_local(&config)) {
        return Err(failed(&format!(
            "the cluster configuration requires the proxy {proxy}, but proxies are not supported"
        )));
    }
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    sockets.set_connect_timeout(config.connect_timeout);
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config().map_err(|error| failed(&error))?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(|error| failed(&error))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let transport = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_ANSWERED_WITHIN)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(tls.enable_all_versions().wrap_connector(sockets));
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer().map_err(|error| failed(&error))?)
        .option_layer(config.auth_layer().map_err(|error| failed(&error))?)
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(stack, config.default_namespace))
}

/// Whether the server is on the local host.
fn is_local(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn proxy_is_an_error_except_for_the_local_host() {
        let to = |server: &'static str| {
            let mut config = Config::new(http::Uri::from_static(server));
            config.proxy_url = Some(http::Uri::from_static("http://proxy.example:3128"));
            client(config).map(drop)
        };
        assert!(to("http://cluster.example:8080").expect_err("proxies are not supported").contains("proxy.example"));
        for local in ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080"] {
            assert_eq!(to(local), Ok(()), "{local}");
        }
    }
}
