//! The administrator's kubeconfig.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keys::Keys;

/// The kubeconfig for a server that listens on `address`. It contains secrets.
pub fn text(address: SocketAddr, keys: &Keys) -> String {
    let data = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: bindery\n\
         \x20 cluster:\n\
         \x20   server: https://{}\n\
         \x20   certificate-authority-data: {}\n\
         users:\n\
         - name: bindery-admin\n\
         \x20 user:\n\
         \x20   client-certificate-data: {}\n\
         \x20   client-key-data: {}\n\
         \x20   token: {}\n\
         contexts:\n\
         - name: bindery\n\
         \x20 context:\n\
         \x20   cluster: bindery\n\
         \x20   user: bindery-admin\n\
         current-context: bindery\n",
        client_address(address),
        data(&keys.authority),
        data(&keys.admin.certificate),
        data(&keys.admin.key),
        keys.token,
    )
}

/// The address at which a client on this machine reaches the server: loopback if it listens on all
/// addresses.
fn client_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The default path of the kubeconfig, in a directory that only its owner can read.
pub fn default_path() -> Result<PathBuf, String> {
    let dir = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    dir("XDG_RUNTIME_DIR")
        .or_else(|| dir("XDG_STATE_HOME"))
        .or_else(|| dir("HOME").map(|home| home.join(".local/state")))
        .map(|dir| dir.join("bindery/kubeconfig"))
        .ok_or_else(|| {
            "no directory for the kubeconfig: HOME is not set. Name a file with --write-kubeconfig FILE".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_on_all_addresses_is_reached_on_loopback() {
        for (address, reached) in [
            ("0.0.0.0:6443", "127.0.0.1:6443"),
            ("[::]:6443", "[::1]:6443"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("10.0.0.7:6443", "10.0.0.7:6443"),
        ] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(client_address(address).to_string(), reached);
        }
    }
}
