//! TLS: the server's certificate, and client certificates signed by our authority.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::keys::Keys;

/// The TLS configuration. A client without a certificate can connect, and has to present a token;
/// one with a foreign certificate cannot.
pub fn config(keys: &Keys) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&keys.authority)?).map_err(failed)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(failed)?;
    let key = PrivateKeyDer::from_pem_slice(keys.server.key.as_bytes()).map_err(failed)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate(&keys.server.certificate)?], key)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificate(pem: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("cannot set up TLS: {error}")
}
