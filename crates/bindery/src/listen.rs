//! Listen addresses, as Go programs accept them: `HOST:PORT`, `:PORT` or `localhost:PORT`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// An address to listen on. Host names are resolved when the program starts to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// A port on the loopback interface.
    pub fn loopback(port: u16) -> ListenAddress {
        ListenAddress { host: Ipv4Addr::LOCALHOST.to_string(), port }
    }

    /// The socket addresses to try, in order. Without a host: all interfaces.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        if self.host.is_empty() {
            // An IPv6 socket accepts IPv4 connections, too, unless the machine has no IPv6.
            let has_ipv6 = std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
            let ip = if has_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        let resolved = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let resolved = resolved.map_err(|error| format!("cannot listen on {self}: {error}"))?;
        Ok(resolved.collect())
    }

    /// Opens the address.
    pub async fn bind(&self) -> Result<TcpListener, String> {
        let addresses = self.resolve().await?;
        let listener = TcpListener::bind(addresses.as_slice()).await;
        listener.map_err(|error| format!("cannot listen on {self}: {error}"))
    }
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        let error = || format!("{text:?} is not a listen address: use HOST:PORT, :PORT or localhost:PORT");
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare {
            None if host.contains([':', '[', ']', '/']) => Err(error()),
            bare => Ok(ListenAddress { host: bare.unwrap_or(host).to_owned(), port }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_parsed_as_by_go() {
        for address in [":8080", "127.0.0.1:0", "[::1]:9", "localhost:6443", "example.com:80"] {
            assert_eq!(address.parse::<ListenAddress>().map(|parsed| parsed.to_string()), Ok(address.to_owned()));
        }
        for address in ["8080", "", "localhost", "::1:80:x", "::1:80", "http://localhost:80", "a:70000"] {
            assert!(address.parse::<ListenAddress>().is_err(), "{address}");
        }
    }

    #[tokio::test]
    async fn all_interfaces_and_localhost_can_be_bound() {
        for (address, is_loopback) in [(":0", false), ("localhost:0", true), ("127.0.0.1:0", true)] {
            let listener = address.parse::<ListenAddress>().expect("an address").bind().await.expect("a listener");
            let ip = listener.local_addr().expect("a bound address").ip();
            assert_eq!((ip.is_loopback(), ip.is_unspecified()), (is_loopback, !is_loopback), "{address}");
        }
    }
}
