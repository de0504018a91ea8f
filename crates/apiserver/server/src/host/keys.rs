//! Keys: a certificate authority of one's own, what it signs, and a token.
//!
//! The authority and the token outlive the process where there is a folder to keep them in, so that a kubeconfig that was
//! copied away stays good. Certificates are signed anew at every start: that costs less than asking whether the old ones
//! still fit.

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

/// The user whom the client certificate and the token are for: the only one there is.
pub const ADMIN: &str = "bindery-admin";
/// The group of those who may do everything.
pub const MASTERS: &str = "system:masters";

const VALID: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Clocks differ.
const VALID_BEFORE: Duration = Duration::from_secs(86_400);

/// Everything that server and administrator need to know each other, as PEM.
pub struct Keys {
    /// The certificate that both trust.
    pub authority: String,
    /// The server's.
    pub server: Pair,
    /// The administrator's.
    pub admin: Pair,
    /// What the administrator may show instead of a certificate.
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
    /// Keys for a server at `address`: with the authority that is kept in `folder`, if one is given and there is one.
    pub fn create(address: IpAddr, folder: Option<&Path>) -> Result<Keys, String> {
        let (authority, issuer, token) = match folder {
            Some(folder) => kept(folder)?,
            None => {
                let (authority, key) = new_authority()?;
                (authority, issuer(&key)?, new_token()?)
            }
        };
        let server = signed(server_params(address)?, &issuer)?;
        let admin = signed(admin_params(), &issuer)?;
        Ok(Keys { authority, server, admin, token })
    }
}

/// The authority and the token of `folder`, made there if need be.
fn kept(folder: &Path) -> Result<(String, Issuer<'static, KeyPair>, String), String> {
    let (certificate_file, key_file, token_file) = (folder.join("ca.crt"), folder.join("ca.key"), folder.join("token"));
    let found = (read_private(&certificate_file)?, read_private(&key_file)?);
    let (certificate, key) = match found {
        (Some(certificate), Some(key)) => (certificate, key),
        // The key is written first: this is what is left where the process ended just then.
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
                "{} holds ca.crt, but not ca.key: bring that back, or remove ca.crt for new ones",
                folder.display()
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
    let signer = KeyPair::from_pem(&key).map_err(|error| damaged(&key_file, &error))?;
    CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| damaged(&certificate_file, &error))?;
    Ok((certificate, Issuer::new(authority_params(), signer), token))
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!(
        "{} is damaged ({error}): bring back a copy, or remove it together with its other half for new keys",
        path.display()
    )
}

fn failed(error: rcgen::Error) -> String {
    format!("keys could not be made: {error}")
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

/// Who signs: what an authority's certificate says of it is always the same, so its key is enough.
fn issuer(key: &str) -> Result<Issuer<'static, KeyPair>, String> {
    Ok(Issuer::new(authority_params(), KeyPair::from_pem(key).map_err(failed)?))
}

fn signed(params: CertificateParams, issuer: &Issuer<'static, KeyPair>) -> Result<Pair, String> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, issuer).map_err(failed)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn server_params(address: IpAddr) -> Result<CertificateParams, String> {
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(String::from);
    let mut params = CertificateParams::new(names).map_err(failed)?;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    params.subject_alt_names.extend(loopback.map(SanType::IpAddress));
    if !loopback.contains(&address) {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
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
    params.not_before = (now - VALID_BEFORE).into();
    params.not_after = (now + VALID).into();
}

/// 256 random bits, in hexadecimal.
fn new_token() -> Result<String, String> {
    let mut bits = [0_u8; 32];
    SystemRandom::new().fill(&mut bits).map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::files::make_private_folder;
    use super::*;

    #[test]
    fn what_is_kept_is_used_again_and_half_of_it_is_refused() {
        let folder = std::env::temp_dir().join(format!("bindery-keys-{}", std::process::id()));
        make_private_folder(&folder).expect("a folder can be made");
        let create = || Keys::create(IpAddr::from([127, 0, 0, 1]), Some(&folder));
        let (first, again) = (create().expect("keys"), create().expect("keys"));
        assert_eq!((&first.authority, &first.token), (&again.authority, &again.token));
        assert_ne!(first.server.certificate, again.server.certificate);
        // Where the process ended after it wrote the key, the same key is used.
        let key = read_private(&folder.join("ca.key"));
        std::fs::remove_file(folder.join("ca.crt")).expect("it is there");
        create().expect("keys");
        assert_eq!(read_private(&folder.join("ca.key")), key);
        std::fs::write(folder.join("ca.key"), "no key").expect("it can be written");
        let error = create().err().expect("it is damaged");
        assert!(error.starts_with(&*folder.join("ca.key").to_string_lossy()), "{error}");
        std::fs::remove_file(folder.join("ca.key")).expect("it is there");
        let error = create().err().expect("half an authority is none");
        assert!(error.contains("holds ca.crt, but not ca.key: bring that back"), "{error}");
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn without_a_folder_nothing_is_the_same_twice() {
        let create = || Keys::create(IpAddr::from([10, 0, 0, 7]), None).expect("keys");
        let (first, other) = (create(), create());
        assert_ne!(first.token, other.token);
        assert_ne!(first.authority, other.authority);
        assert_eq!(first.token.len(), 64);
    }
}
