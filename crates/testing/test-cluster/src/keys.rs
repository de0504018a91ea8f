//! The keys of a test cluster: certificate authority, serving certificate, service account key.
//!
//! The API server could create a certificate itself, but clients would have to wait for it, and
//! creating its RSA key takes a good part of a second.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The files in the directory of the test cluster.
pub(crate) struct Keys {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Signs the tokens of service accounts.
    pub(crate) service_accounts: PathBuf,
    /// Verifies the tokens.
    pub(crate) service_accounts_public: PathBuf,
}

impl Keys {
    /// Creates new keys.
    pub(crate) fn create(folder: &Path) -> Result<Self, String> {
        let failed = |error: rcgen::Error| format!("cannot create the keys of the test cluster: {error}");
        let authority_key = KeyPair::generate().map_err(failed)?;
        let authority = authority_params();
        let authority_pem = authority.self_signed(&authority_key).map_err(failed)?.pem();

        let key = KeyPair::generate().map_err(failed)?;
        let names = ["127.0.0.1", "localhost"].map(String::from);
        let issuer = Issuer::new(authority, authority_key);
        let certificate = CertificateParams::new(names).and_then(|params| params.signed_by(&key, &issuer));
        let service_accounts = KeyPair::generate().map_err(failed)?;

        let file = |name: &str, text: &str| write_private(&folder.join(name), text);
        Ok(Self {
            ca: file("ca.crt", &authority_pem)?,
            certificate: file("apiserver.crt", &certificate.map_err(failed)?.pem())?,
            key: file("apiserver.key", &key.serialize_pem())?,
            service_accounts: file("service-accounts.key", &service_accounts.serialize_pem())?,
            service_accounts_public: file("service-accounts.pub", &service_accounts.public_key_pem())?,
        })
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "bindery-test-cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Writes a file with mode 0600, and returns its path.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<PathBuf, String> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_path_buf())
}
