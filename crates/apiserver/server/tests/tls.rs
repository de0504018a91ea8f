//! The server's certificate, verified by a TLS client with the certificate authority of the
//! kubeconfig.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindery_apiserver::host::{Config, Server};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

fn connector(kubeconfig: &str) -> TlsConnector {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let pem = STANDARD.decode(line.expect("an authority")).expect("base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("a valid certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    TlsConnector::from(Arc::new(config.expect("versions").with_root_certificates(roots).with_no_client_auth()))
}

/// Whether a client accepts the server under a name.
async fn is_valid(server: &Server, name: &str) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    connector(server.kubeconfig()).connect(name, stream).await.is_ok()
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux").trim().to_owned()
}

fn remote(sans: &[&str], data_dir: Option<PathBuf>) -> Config {
    Config {
        listen: SocketAddr::from(([0, 0, 0, 0], 0)),
        allow_remote: true,
        tls_sans: sans.iter().map(|name| (*name).to_owned()).collect(),
        data_dir,
        ..Config::in_memory()
    }
}

#[tokio::test]
async fn a_remote_client_can_verify_the_server() {
    let server = Server::start(remote(&["storage.example.com", "192.0.2.7"], None)).await.expect("a server");
    let host = host_name();
    for name in ["storage.example.com", "192.0.2.7", "localhost", "127.0.0.1", &host] {
        assert!(is_valid(&server, name).await, "{name}");
    }
    // The address by which this machine would reach another one; nothing is sent.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    if let Ok(address) = probe {
        assert!(is_valid(&server, &address.ip().to_string()).await, "{address}");
    }
    for name in ["other.example.com", "192.0.2.8"] {
        assert!(!is_valid(&server, name).await, "{name}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_local_server_is_not_valid_for_the_host() {
    let server = Server::start(Config::in_memory()).await.expect("a server");
    assert!(is_valid(&server, "localhost").await);
    assert!(!is_valid(&server, "storage.example.com").await);
    server.stop().await;
}

#[tokio::test]
async fn the_certificate_follows_the_names_and_the_authority_stays() {
    let dir = std::env::temp_dir().join(format!("bindery-tls-{}", std::process::id()));
    let mut authorities = Vec::new();
    for names in [["a.example.com", "b.example.com"], ["b.example.com", "a.example.com"]] {
        let server = Server::start(remote(&names[..1], Some(dir.clone()))).await.expect("a server");
        assert!(is_valid(&server, names[0]).await, "{names:?}");
        assert!(!is_valid(&server, names[1]).await, "{names:?}");
        authorities.push(std::fs::read_to_string(dir.join("ca.crt")).expect("it exists"));
        server.stop().await;
    }
    assert_eq!(authorities[0], authorities[1]);
    std::fs::remove_dir_all(dir).expect("it can be removed");
}
