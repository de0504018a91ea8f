//! `bindery`: a volume control plane for Kubernetes.

use clap::Parser;

/// A volume control plane for Kubernetes: binds claims to volumes.
///
/// This version holds the decision core only: its rules can be read, tested and measured, and nothing runs yet.
#[derive(Parser)]
#[command(name = "bindery", version, arg_required_else_help = true)]
struct Args {}

fn main() {
    Args::parse();
}
