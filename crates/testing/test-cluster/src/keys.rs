//! The keys of a lab: a certificate authority, the API server's certificate, and the key that signs service account tokens.
//!
//! The API server could make a certificate itself, but then only a client that waits for it could know whom to trust; and an
//! elliptic key is there at once, where the API server's own takes a good part of a second.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The files, all of them in the lab's folder.
pub(crate) struct Keys {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Signs the tokens of service accounts.
    pub(crate) service_accounts: PathBuf,
    /// Verifies them.
    pub(crate) service_accounts_public: PathBuf,
}

impl Keys {
    /// Makes new ones.
    pub(crate) fn create(folder: &Path) -> Result<Self, String> {
        let failed = |error: rcgen::Error| format!("the lab's keys could not be made: {error}");
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

/// Writes a file that only we can read, and gives its path back.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<PathBuf, String> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    open.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_path_buf())
}
