//! Ports for API servers.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;

/// Where labs tell each other which ports are taken. NoObserver else listens there.
const NOTICE_BOARD: &str = "127.0.0.2";

/// A port that no other lab gets for as long as this is held, not even while the API server that listens on it is away.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// `None` on systems whose loopback has one address only: there it is a matter of chance.
    _notice: Option<TcpListener>,
}

impl Port {
    /// One that nobody listens on, below those that systems give to outgoing connections.
    pub(crate) fn take() -> Result<Port, String> {
        let dice = RandomState::new();
        (0_u32..100)
            .find_map(|throw| Port::claim(20_000 + u16::try_from(dice.hash_one(throw) % 10_000).unwrap_or_default()))
            .ok_or_else(|| "no port of a hundred between 20000 and 30000 is free".to_owned())
    }

    fn claim(number: u16) -> Option<Port> {
        let notice = match TcpListener::bind((NOTICE_BOARD, number)) {
            Ok(notice) => Some(notice),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => return None,
            Err(_) => None,
        };
        TcpListener::bind(("127.0.0.1", number)).is_ok().then_some(Port { number, _notice: notice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_port_is_one_labs_alone_though_nobody_listens() {
        let first = Port::take().expect("a port");
        assert!(Port::claim(first.number).is_none());
    }
}
