//! Ports for API servers.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;

/// The address on which test clusters reserve ports. No other program uses it.
const RESERVATION_ADDRESS: &str = "127.0.0.2";

/// A port that no other test cluster gets, even while the API server is not running.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// `None` on systems with a single loopback address, where ports are not reserved.
    _reservation: Option<TcpListener>,
}

impl Port {
    /// A free port below the ephemeral port range.
    pub(crate) fn take() -> Result<Port, String> {
        let random = RandomState::new();
        (0_u32..100)
            .find_map(|throw| Port::claim(20_000 + u16::try_from(random.hash_one(throw) % 10_000).unwrap_or_default()))
            .ok_or_else(|| "cannot find a free port: tried 100 between 20000 and 30000".to_owned())
    }

    fn claim(number: u16) -> Option<Port> {
        let reservation = match TcpListener::bind((RESERVATION_ADDRESS, number)) {
            Ok(reservation) => Some(reservation),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => return None,
            Err(_) => None,
        };
        TcpListener::bind(("127.0.0.1", number)).is_ok().then_some(Port { number, _reservation: reservation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn port_is_reserved_without_a_listener() {
        let first = Port::take().expect("a port");
        assert!(Port::claim(first.number).is_none());
    }
}
