//! The etcd of a test cluster. It listens on a socket in the directory of the cluster.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::wait::TIMEOUT;

/// The socket.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("etcd.sock")
}

/// The command line.
pub(crate) fn args(folder: &Path) -> Vec<String> {
    // A single member has no peers: the advertised address is never used.
    let placeholder = "http://localhost:1";
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=unix://{}", socket(folder).display()),
        format!("--advertise-client-urls={placeholder}"),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        format!("--initial-advertise-peer-urls={placeholder}"),
        "--name=test-cluster".to_owned(),
        format!("--initial-cluster=test-cluster={placeholder}"),
        // The data is temporary, so durability is not needed.
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=8589934592".to_owned(),
        "--log-level=error".to_owned(),
    ]
}

/// Compacts all revisions but the newest, which is returned.
pub(crate) fn compact(folder: &Path) -> Result<u64, String> {
    let socket = socket(folder);
    // Any answer contains the current revision; "AA==" is a zero byte.
    let answer = post(&socket, "/v3/kv/range", r#"{"key":"AA==","count_only":true}"#)?;
    let digits = answer.split_once(r#""revision":""#).map(|(_, rest)| rest.split('"').next().unwrap_or_default());
    let revision: u64 = digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("the answer of etcd has no revision: {answer}"))?;
    post(&socket, "/v3/kv/compaction", &format!(r#"{{"revision":"{revision}","physical":true}}"#))?;
    Ok(revision)
}

fn post(socket: &Path, path: &str, body: &str) -> Result<String, String> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = || -> std::io::Result<String> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error| format!("etcd {path}: {error}"))?;
    if answer.starts_with("HTTP/1.1 200") { Ok(answer) } else { Err(format!("etcd {path}: {answer}")) }
}
