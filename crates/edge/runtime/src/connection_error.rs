//! Why a connection failed, in words an operator can act on.

use std::error::Error;
use std::io::ErrorKind;

/// The cause of a failed connection: the innermost error of the chain, translated where it is known
/// (closed port, unknown host name, certificates that one side does not accept).
pub fn connection_error(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    let mut io_kind = None;
    while let Some(source) = cause.source() {
        cause = source;
        io_kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(io_kind);
    }
    let text = cause.to_string();
    match io_kind {
        Some(ErrorKind::ConnectionRefused) => "connection refused".into(),
        Some(ErrorKind::ConnectionReset) => "connection reset by the server".into(),
        Some(ErrorKind::TimedOut) => "connection timed out".into(),
        _ if text.contains("failed to lookup address") => "the host name cannot be resolved".into(),
        // BadSignature: another authority with the same name.
        _ if text.contains("UnknownIssuer") || text.contains("BadSignature") => {
            "the server's certificate is not signed by the certificate authority of the kubeconfig".into()
        }
        _ if text.contains("NotValidForName") || text.contains("not valid for name") => {
            format!("the server's certificate is for another host name: {text}")
        }
        _ if text.contains("certificate expired") || text.contains("Expired") => {
            format!("the server's certificate has expired: {text}")
        }
        _ if text.contains("received fatal alert") => {
            format!("the server does not accept the client certificate of the kubeconfig: {text}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Wrapped(std::io::Error);

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("client error (Connect)")
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_are_named_instead_of_the_layers_above_them() {
        let named = |error: std::io::Error| connection_error(&Wrapped(error));
        assert_eq!(named(ErrorKind::ConnectionRefused.into()), "connection refused");
        let unknown_host = "failed to lookup address information: Name or service not known";
        assert_eq!(named(std::io::Error::other(unknown_host)), "the host name cannot be resolved");
        let other_ca = std::io::Error::new(ErrorKind::InvalidData, "invalid peer certificate: UnknownIssuer");
        assert!(named(other_ca).starts_with("the server's certificate is not signed by"));
        let expired = "invalid peer certificate: certificate expired: verified at time 2 (UNIX)";
        assert!(named(std::io::Error::other(expired)).starts_with("the server's certificate has expired: "));
        let name =
            "invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for \"b\"";
        assert!(named(std::io::Error::other(name)).starts_with("the server's certificate is for another host name: "));
        let alert = "received fatal alert: UnknownCA";
        assert!(named(std::io::Error::other(alert)).starts_with("the server does not accept the client certificate"));
        assert_eq!(named(std::io::Error::other("broken")), "broken");
    }
}
