//! The audit log: one `audit.k8s.io/v1` event per response, at level Metadata, as a line of JSON.
//!
//! A line is written before the response is sent. The file is rotated: it and its predecessor
//! together use at most twice the maximum size.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use http::header::{HeaderValue, USER_AGENT};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::call_info::CallVerb;
use super::path::Path;
use crate::host::keys::{ADMIN, MASTERS};

/// The size at which the log is rotated: upstream's default.
pub const AUDIT_BYTES_MAX: u64 = 100 << 20;

/// An open audit log.
pub struct AuditLog {
    path: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

struct State {
    file: File,
    bytes: u64,
}

/// A response to record.
pub struct AuditEvent<'a> {
    /// The request.
    pub request: &'a http::request::Parts,
    /// Its path.
    pub path: &'a Path<'a>,
    /// Its verb.
    pub verb: CallVerb,
    /// Its ID.
    pub audit_id: &'a HeaderValue,
    /// When it was received.
    pub received: Timestamp,
    /// The client.
    pub client: SocketAddr,
    /// The status code of the response.
    pub code: u16,
}

impl AuditLog {
    /// Opens a log; events are appended to an existing file.
    pub fn open(path: PathBuf, bytes_max: u64) -> Result<AuditLog, String> {
        let state = State::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(AuditLog { path, bytes_max, state: Mutex::new(state) })
    }

    /// Writes an event.
    pub fn write(&self, event: &AuditEvent<'_>) -> Result<(), String> {
        let line = format!("{}\n", event.to_json());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.rotate(&mut state, line.len() as u64).and_then(|()| state.file.write_all(line.as_bytes()));
        state.bytes += line.len() as u64;
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn rotate(&self, state: &mut State, more: u64) -> std::io::Result<()> {
        if state.bytes == 0 || state.bytes + more <= self.bytes_max {
            return Ok(());
        }
        let mut old = self.path.as_os_str().to_owned();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        *state = State::open(&self.path)?;
        Ok(())
    }
}

impl State {
    fn open(path: &std::path::Path) -> std::io::Result<State> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(State { file, bytes })
    }
}

impl AuditEvent<'_> {
    fn to_json(&self) -> Value {
        let time = |time: Timestamp| format!("{time:.6}");
        let agent = self.request.headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        // Without valid credentials nothing is known about the user.
        let user = match self.code {
            401 => json!({}),
            _ => json!({"username": ADMIN, "groups": [MASTERS, "system:authenticated"]}),
        };
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": String::from_utf8_lossy(self.audit_id.as_bytes()),
            "stage": if self.verb == CallVerb::Watch { "ResponseStarted" } else { "ResponseComplete" },
            "requestURI": self.request.uri.path_and_query().map_or("", |uri| uri.as_str()),
            "verb": self.verb.as_str(),
            "user": user,
            "sourceIPs": [self.client.ip()],
            "userAgent": agent.unwrap_or_default(),
            "responseStatus": {"metadata": {}, "code": self.code},
            "requestReceivedTimestamp": time(self.received),
            "stageTimestamp": time(Timestamp::now()),
        });
        if let Path::Objects(path) = self.path {
            let fields = [
                ("apiGroup", path.group),
                ("apiVersion", path.version),
                ("resource", &*path.resource),
                ("subresource", &*path.subresource),
                ("namespace", &*path.namespace),
                ("name", &*path.name),
            ];
            let set = fields.into_iter().filter(|(_, value)| !value.is_empty());
            event["objectRef"] = set.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        }
        event
    }
}
