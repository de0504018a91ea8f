//! Clients of a server, and a journal that tests control.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindery_apiserver::host::Server;
use bindery_apiserver::http::Journal;
use bindery_apiserver::store::JournalRecord;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A client with the administrator's credentials that never retries.
pub async fn client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a config");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// A TLS connection without credentials.
pub async fn tls(server: &Server, protocol: &[u8]) -> Result<TlsStream<TcpStream>, std::io::Error> {
    let lines = server.kubeconfig().lines();
    let authority = lines.filter_map(|line| line.trim().strip_prefix("certificate-authority-data: ")).next();
    let pem = STANDARD.decode(authority.expect("an authority")).expect("base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("a valid certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// A journal that persists nothing until it is released.
pub struct HeldJournal {
    appended: watch::Sender<u64>,
    is_released: watch::Sender<bool>,
}

impl Default for HeldJournal {
    fn default() -> Self {
        Self { appended: watch::Sender::new(0), is_released: watch::Sender::new(false) }
    }
}

impl HeldJournal {
    pub fn revision(&self) -> u64 {
        *self.appended.borrow()
    }

    /// Waits until so many changes were made.
    pub async fn appended_after(&self, revision: u64, changes: u64) {
        let mut appended = self.appended.subscribe();
        appended.wait_for(|last| *last >= revision + changes).await.expect("the journal exists");
    }

    pub fn release(&self) {
        self.is_released.send_replace(true);
    }
}

impl Journal for HeldJournal {
    fn append(&self, records: Vec<JournalRecord>) {
        if let Some(last) = records.last() {
            self.appended.send_replace(last.revision);
        }
    }

    fn persisted(&self, _revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
            let mut released = self.is_released.subscribe();
            released.wait_for(|released| *released).await.map(drop).map_err(|error| error.to_string())
        })
    }

    fn close(&self) {}
}
