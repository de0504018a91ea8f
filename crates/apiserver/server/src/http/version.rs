//! The version of Kubernetes that this server is compatible with.

use serde_json::json;

/// The minor version whose API is served.
pub const MINOR: &str = "36";

/// The version that the server reports.
pub const GIT_VERSION: &str = concat!("v1.36.4-bindery.", env!("CARGO_PKG_VERSION"));

/// The document at `/version`. Clients compare the version with their own, so it is one of
/// Kubernetes.
pub fn document() -> Vec<u8> {
    let document = json!({
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    });
    super::pretty::indented(document.to_string().as_bytes())
}

/// The architecture, as Go names it.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
