//! The names and addresses that the server's certificate is valid for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustls::pki_types::ServerName;

/// Names and addresses by which clients reach a server, besides loopback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerNames {
    /// Host names, possibly with a wildcard.
    pub names: Vec<String>,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
}

impl ServerNames {
    /// The names of a server that listens on an address, and `more`, which the administrator
    /// chose. A server that other machines reach is also known by the name of its host, and by all
    /// addresses of its host if it listens on all of them.
    pub fn of(listen: IpAddr, more: &[String]) -> Result<ServerNames, String> {
        let mut found = ServerNames::default();
        if !listen.is_loopback() {
            found.names.extend(host_name().filter(|name| is_host_name(name)));
            match listen.is_unspecified() {
                true => found.addresses.extend(host_addresses()),
                false => found.addresses.push(listen),
            }
        }
        for name in more {
            match name.parse() {
                Ok(address) => found.addresses.push(address),
                Err(_) if is_host_name(name) => found.names.push(name.clone()),
                Err(_) => return Err(format!("--tls-san {name:?} is neither a host name nor an IP address")),
            }
        }
        Ok(found)
    }
}

fn is_host_name(name: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)))
}

fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty() && name != "(none)")
}

/// The addresses of this machine, as far as Linux tells.
fn host_addresses() -> Vec<IpAddr> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut addresses: Vec<IpAddr> = v4_addresses(&read("/proc/net/fib_trie")).map(IpAddr::V4).collect();
    addresses.extend(v6_addresses(&read("/proc/net/if_inet6")).map(IpAddr::V6));
    addresses.retain(|address| !address.is_loopback() && !address.is_unspecified());
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The local addresses in the kernel's routing table: a line with the address, and then one with
/// its type.
fn v4_addresses(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let pairs = lines.windows(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect::<Vec<_>>();
    pairs.into_iter().filter(|(_, kind)| kind == "/32 host LOCAL").filter_map(|(address, _)| {
        let address = address.strip_prefix("|-- ")?;
        address.parse().ok()
    })
}

/// The addresses of all interfaces: each line starts with one in hexadecimal.
fn v6_addresses(table: &str) -> impl Iterator<Item = Ipv6Addr> {
    let bits = table.lines().filter_map(|line| u128::from_str_radix(line.split(' ').next()?, 16).ok());
    bits.map(Ipv6Addr::from_bits).filter(|address| !address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_kernels_tables() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.1.2.3\n        \
                     /32 host LOCAL\n     |-- 10.1.2.255\n        /32 link BROADCAST\n";
        assert_eq!(v4_addresses(table).collect::<Vec<_>>(), [Ipv4Addr::new(10, 1, 2, 3)]);
        let table =
            "fe80000000000000020c29fffe000000 02 40 20 80 eth0\n20010db8000000000000000000000001 02 40 00 80 eth0\n";
        assert_eq!(v6_addresses(table).collect::<Vec<_>>(), ["2001:db8::1".parse::<Ipv6Addr>().expect("an address")]);
    }

    #[test]
    fn only_a_server_that_others_reach_has_the_names_of_its_host() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(ServerNames::of(loopback, &[]), Ok(ServerNames::default()));
        let listen: IpAddr = "192.0.2.7".parse().expect("an address");
        let found = ServerNames::of(listen, &["*.example.com".to_owned(), "198.51.100.1".to_owned()]).expect("valid");
        assert_eq!(found.addresses, [listen, "198.51.100.1".parse::<IpAddr>().expect("an address")]);
        assert_eq!(found.names.last().map(String::as_str), Some("*.example.com"));
        for invalid in ["", "a b", "é.example", "https://a", "a:6443"] {
            let error = ServerNames::of(loopback, &[invalid.to_owned()]).expect_err("it is invalid");
            assert!(error.contains("--tls-san"), "{error}");
        }
    }
}
