//! Keys: a certificate authority, the certificates that it signs, and a token.
//!
//! With a data directory, the authority and the token survive restarts, so that a copied kubeconfig
//! stays valid. Certificates are signed at every start, so that they are valid for the server's
//! current names and addresses.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::files::{read_private, write_private};
use super::names::ServerNames;
use crate::disk::SnapshotKeys;

/// The only user: that of the client certificate and of the token.
pub const ADMIN: &str = "bindery-admin";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

const VALIDITY: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Allows for clocks that differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(86_400);

/// The keys by which server and administrator authenticate each other, as PEM.
pub struct Keys {
    /// The certificate of the authority.
    pub authority: String,
    /// Its key, which signs the others.
    pub authority_key: String,
    /// The server's certificate and key.
    pub server: Pair,
    /// The administrator's certificate and key.
    pub admin: Pair,
    /// The administrator's bearer token, as an alternative to the certificate.
    pub token: String,
}

/// A certificate and its key.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Keys {
    /// Keys for a server with these names. The authority and the token are loaded from `dir`, if
    /// there is one, or created there.
    pub fn create(names: &ServerNames, dir: Option<&Path>) -> Result<Keys, String> {
        let (authority, authority_key, token) = match dir {
            Some(dir) => load_or_create(dir)?,
            None => {
                let (authority, key) = new_authority()?;
                (authority, key, new_token()?)
            }
        };
        let issuer = issuer(&authority_key)?;
        let server = signed(server_params(names)?, &issuer)?;
        let admin = signed(admin_params(), &issuer)?;
        Ok(Keys { authority, authority_key, server, admin, token })
    }
}

impl Keys {
    /// The keys that a data directory contains.
    pub fn for_snapshots(&self) -> SnapshotKeys {
        let (authority, authority_key, token) =
            (self.authority.clone(), self.authority_key.clone(), self.token.clone());
        SnapshotKeys { authority, authority_key, token }
    }
}

/// Loads the certificate and the key of the authority and the token of `dir`, or creates them.
fn load_or_create(dir: &Path) -> Result<(String, String, String), String> {
    let (certificate_file, key_file, token_file) = (dir.join("ca.crt"), dir.join("ca.key"), dir.join("token"));
    let found = (read_private(&certificate_file)?, read_private(&key_file)?);
    let (certificate, key) = match found {
        (Some(certificate), Some(key)) => (certificate, key),
        // The key is written first, so a key without certificate is what a crash in between leaves.
        (None, found) => {
            let key = match found {
                Some(key) => KeyPair::from_pem(&key).map_err(|error| damaged(&key_file, &error))?,
                None => KeyPair::generate().map_err(failed)?,
            };
            let certificate = authority_params().self_signed(&key).map_err(failed)?.pem();
            write_private(&key_file, &key.serialize_pem())?;
            write_private(&certificate_file, &certificate)?;
            (certificate, key.serialize_pem())
        }
        (Some(_), None) => {
            return Err(format!(
                "{} contains ca.crt but not ca.key: restore ca.key from a backup, or remove ca.crt to create new keys",
                dir.display()
            ));
        }
    };
    let token = match read_private(&token_file)? {
        Some(token) if !token.trim().is_empty() => token.trim().to_owned(),
        Some(_) | None => {
            let token = new_token()?;
            write_private(&token_file, &token)?;
            token
        }
    };
    KeyPair::from_pem(&key).map_err(|error| damaged(&key_file, &error))?;
    CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| damaged(&certificate_file, &error))?;
    Ok((certificate, key, token))
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!(
        "{} is damaged ({error}): restore it from a backup, or remove ca.crt and ca.key to create new keys",
        path.display()
    )
}

fn failed(error: rcgen::Error) -> String {
    format!("cannot create keys: {error}")
}

fn new_authority() -> Result<(String, String), String> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = authority_params().self_signed(&key).map_err(failed)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "bindery");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    valid_from_now(&mut params);
    params
}

/// The issuer. The authority's certificate always has the same content, so its key is enough.
fn issuer(key: &str) -> Result<Issuer<'static, KeyPair>, String> {
    Ok(Issuer::new(authority_params(), KeyPair::from_pem(key).map_err(failed)?))
}

fn signed(params: CertificateParams, issuer: &Issuer<'static, KeyPair>) -> Result<Pair, String> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, issuer).map_err(failed)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn server_params(more: &ServerNames) -> Result<CertificateParams, String> {
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(String::from);
    let names = names.into_iter().chain(more.names.iter().cloned());
    let mut params = CertificateParams::new(names.collect::<Vec<_>>()).map_err(failed)?;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    params.subject_alt_names.extend(loopback.into_iter().chain(more.addresses.iter().copied()).map(SanType::IpAddress));
    params.distinguished_name.push(DnType::CommonName, "bindery-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    valid_from_now(&mut params);
    Ok(params)
}

fn admin_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, ADMIN);
    params.distinguished_name.push(DnType::OrganizationName, MASTERS);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    valid_from_now(&mut params);
    params
}

fn valid_from_now(params: &mut CertificateParams) {
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_TOLERANCE).into();
    params.not_after = (now + VALIDITY).into();
}

/// 256 random bits, in hexadecimal.
fn new_token() -> Result<String, String> {
    let mut bits = [0_u8; 32];
    SystemRandom::new().fill(&mut bits).map_err(|_| "cannot get random numbers from the system".to_owned())?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::files::create_private_dir;
    use super::*;

    #[test]
    fn keys_in_a_directory_are_reused_and_incomplete_ones_rejected() {
        let dir = std::env::temp_dir().join(format!("bindery-keys-{}", std::process::id()));
        create_private_dir(&dir).expect("the directory is created");
        let create = || Keys::create(&ServerNames::default(), Some(&dir));
        let (first, again) = (create().expect("keys"), create().expect("keys"));
        assert_eq!((&first.authority, &first.token), (&again.authority, &again.token));
        assert_ne!(first.server.certificate, again.server.certificate);
        // After a crash between the two files, the same key is used.
        let key = read_private(&dir.join("ca.key"));
        std::fs::remove_file(dir.join("ca.crt")).expect("the file exists");
        create().expect("keys");
        assert_eq!(read_private(&dir.join("ca.key")), key);
        std::fs::write(dir.join("ca.key"), "not a key").expect("the file is written");
        let error = create().err().expect("it is damaged");
        assert!(error.starts_with(&*dir.join("ca.key").to_string_lossy()), "{error}");
        std::fs::remove_file(dir.join("ca.key")).expect("the file exists");
        let error = create().err().expect("the key is missing");
        assert!(error.contains("contains ca.crt but not ca.key: restore ca.key"), "{error}");
        std::fs::remove_dir_all(&dir).expect("the directory is removed");
    }

    #[test]
    fn without_a_directory_all_keys_are_new() {
        let create = || Keys::create(&ServerNames::default(), None).expect("keys");
        let (first, other) = (create(), create());
        assert_ne!(first.token, other.token);
        assert_ne!(first.authority, other.authority);
        assert_eq!(first.token.len(), 64);
    }
}
