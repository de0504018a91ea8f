//! Logging to standard error, as text for people or as JSON lines for machines.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;

/// Flags that every command accepts.
#[derive(clap::Args)]
#[command(next_help_heading = "Logging options")]
pub struct LogFlags {
    /// Log verbosity, counted as by klog: from 4 on also decisions that change nothing, from 6 on
    /// everything. RUST_LOG overrides it.
    #[arg(short = 'v', long, value_name = "LEVEL", global = true, default_value_t = 0)]
    pub v: u8,
    /// Log format on standard error [default: text on a terminal, json otherwise].
    #[arg(long, value_name = "FORMAT", global = true, alias = "logging-format")]
    pub log_format: Option<LogFormat>,
}

/// Lines for people, or one JSON object on each line. Without comments on the variants, because
/// clap would add them to every help text.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// How a command logs unless flags say otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LogProfile {
    /// Runs for a long time: logs what it does, with timestamps.
    Daemon,
    /// Prints an answer: logs warnings and errors, as text without timestamps.
    OneShot,
    /// Logs errors only.
    ErrorsOnly,
}

/// Starts logging. From here on, nothing else may be written to standard error.
pub fn start(flags: &LogFlags, profile: LogProfile) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(flags.v, profile)));
    let is_terminal = stderr().is_terminal();
    let default = if is_terminal { LogFormat::Text } else { LogFormat::Json };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(stderr);
    match flags.log_format.unwrap_or(default) {
        LogFormat::Json => logs.json().flatten_event(true).init(),
        LogFormat::Text => {
            let logs = logs.with_ansi(is_terminal && std::env::var_os("NO_COLOR").is_none());
            if profile == LogProfile::OneShot { logs.without_time().init() } else { logs.init() }
        }
    }
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(%panic, %backtrace, "internal error: a task panicked");
    }));
}

/// The filter for a verbosity, in the syntax of `RUST_LOG`.
fn directives(verbosity: u8, profile: LogProfile) -> String {
    let level = match profile {
        LogProfile::Daemon => "info",
        LogProfile::OneShot => "warn",
        LogProfile::ErrorsOnly => "error",
    };
    match verbosity {
        // kube_client logs every failed request. The caller logs what follows from it.
        0..=3 => format!("{level},kube_client=off"),
        4..=5 => "info,kube_client=off,bindery_runtime=debug".to_owned(),
        6.. => "debug".to_owned(),
    }
}
