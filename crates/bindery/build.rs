//! Passes the git commit and the Rust version to `bindery version`.

use std::path::Path;
use std::process::Command;

/// Set by image builds, where the sources come without a `.git` folder.
const COMMIT_VARIABLE: &str = "BINDERY_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT_VARIABLE}");
    // `logs/HEAD` changes with every commit and checkout. Only this crate is compiled again.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output("git", &["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let given = std::env::var(COMMIT_VARIABLE).ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| output("git", &["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=BINDERY_BUILD_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    // "rustc 1.95.0 (…)"
    let rust = output(&compiler, &["--version"]).and_then(|line| Some(line.split(' ').nth(1)?.to_owned()));
    println!("cargo::rustc-env=BINDERY_BUILD_RUST={}", rust.as_deref().unwrap_or("unknown"));
}

/// The first line that a program prints; `None` if it fails.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.lines().next()?.to_owned())
}
