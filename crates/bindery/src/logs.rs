//! Logs: to standard error, as lines for people on a terminal and as JSON for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging, at a level unless more is asked for. `RUST_LOG` says more than `-v` where it is set.
pub fn start(at_rest: &str, verbose: u8) {
    // The client tells of every call that fails; what follows from it is told by whoever made the call.
    let level = match verbose {
        0 => format!("{at_rest},kube_client=off"),
        1 => "info,kube_client=off,bindery_runtime=debug".to_owned(),
        _ => "debug".to_owned(),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).init();
    } else {
        logs.json().flatten_event(true).with_target(false).init();
    }
}
