//! Connections: kube's client over a transport that speaks HTTP/2.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use rustls_pki_types::ServerName;
use tower::{BoxError, ServiceBuilder};

/// A connection that died in silence would take every call and watch with it: it is asked now and then, as client-go does.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// A client of a cluster.
///
/// Where the server speaks HTTP/2, all calls and watches share one connection; kube's own transport would open one for each
/// call in flight. Nothing is sent twice: what failed is decided about anew, and a retry below that would only hide it.
pub fn client(config: Config) -> Result<Client, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("cannot make a client: {error}");
    // Who asks for a proxy may have no other way, or want no other. This machine is reached without one, as by kubectl.
    if let Some(proxy) = config.proxy_url.as_ref().filter(|_| !is_here(&config)) {
        return Err(wrong(&format!("proxies are not supported, and {proxy} is asked for")));
    }
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    sockets.set_connect_timeout(config.connect_timeout);
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config().map_err(|error| wrong(&error))?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(|error| wrong(&error))?;
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
        .layer(config.extra_headers_layer().map_err(|error| wrong(&error))?)
        .option_layer(config.auth_layer().map_err(|error| wrong(&error))?)
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(stack, config.default_namespace))
}

/// Whether the server is on this machine.
fn is_here(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_is_not_passed_by_in_silence() {
        let to = |server: &'static str| {
            let mut config = Config::new(http::Uri::from_static(server));
            config.proxy_url = Some(http::Uri::from_static("http://proxy.example:3128"));
            client(config).map(drop)
        };
        assert!(to("http://cluster.example:8080").expect_err("there is no way").contains("proxy.example"));
        for here in ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080"] {
            assert_eq!(to(here), Ok(()), "{here}");
        }
    }
}
