//! Addresses as Go's programs have them: `:8080` for every address of this host.

use std::net::SocketAddr;

/// Reads an address.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map_err(|_| format!("{text:?} is no address such as :8080 or 127.0.0.1:8080"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_writes_them() {
        let read = |text| parse(text).map(|address| address.to_string());
        assert_eq!(read(":8080"), Ok("0.0.0.0:8080".into()));
        assert_eq!(read("127.0.0.1:0"), Ok("127.0.0.1:0".into()));
        assert_eq!(read("[::1]:9"), Ok("[::1]:9".into()));
        assert!(read("8080").is_err() && read("").is_err());
    }
}
