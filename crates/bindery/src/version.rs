//! `bindery version`.

use serde_json::json;

use crate::stdout::{self, OutputFormat};

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The git commit it was built from, or `unknown`.
pub const COMMIT: &str = env!("BINDERY_BUILD_COMMIT");
/// The compiler it was built with.
const RUST: &str = env!("BINDERY_BUILD_RUST");
/// The supported Kubernetes versions.
pub const KUBERNETES_MIN: &str = "1.33";
pub const KUBERNETES_MAX: &str = "1.37";

/// What `bindery --version` prints after the name.
pub const SUMMARY: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("BINDERY_BUILD_COMMIT"),
    ", Rust ",
    env!("BINDERY_BUILD_RUST"),
    ", Kubernetes 1.33 to 1.37)"
);

/// Flags of `bindery version`.
#[derive(clap::Args)]
pub struct Args {
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
}

/// Prints the version.
pub fn run(args: &Args) -> Result<(), String> {
    let text = match args.output {
        OutputFormat::Text => format!(
            "bindery     {VERSION}\ncommit      {COMMIT}\nrust        {RUST}\nkubernetes  {KUBERNETES_MIN} to {KUBERNETES_MAX}\n"
        ),
        OutputFormat::Json => stdout::pretty_json(&json!({
            "version": VERSION,
            "commit": COMMIT,
            "rust": RUST,
            "kubernetes": {"min": KUBERNETES_MIN, "max": KUBERNETES_MAX},
        }))?,
    };
    stdout::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_the_supported_kubernetes_versions() {
        assert!(SUMMARY.ends_with(&format!(", Kubernetes {KUBERNETES_MIN} to {KUBERNETES_MAX})")));
    }
}
