//! The version, and the help without arguments.

use std::process::{Command, Output};

fn bindery(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bindery")).args(args).output().expect("bindery runs")
}

fn stdout(args: &[&str]) -> String {
    let output = bindery(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn version_names_commit_compiler_and_supported_kubernetes_versions() {
    let version = env!("CARGO_PKG_VERSION");
    let line = stdout(&["--version"]);
    assert!(line.starts_with(&format!("bindery {version} (commit ")), "{line}");
    assert!(line.ends_with(", Kubernetes 1.33 to 1.37)\n"), "{line}");
    assert_eq!(stdout(&["controller", "--version"]), line.replacen("bindery", "bindery-controller", 1));

    let text = stdout(&["version"]);
    let fields: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(fields, ["bindery", "commit", "rust", "kubernetes"]);

    let json: serde_json::Value = serde_json::from_str(&stdout(&["version", "-o", "json"])).expect("JSON");
    assert_eq!(json["version"], version);
    assert_eq!(json["kubernetes"], serde_json::json!({"min": "1.33", "max": "1.37"}));
    assert!(line.contains(json["commit"].as_str().expect("a commit")), "{line}");
    assert!(line.contains(json["rust"].as_str().expect("a Rust version")), "{line}");
}

#[test]
fn help_is_printed_without_arguments() {
    let output = bindery(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: bindery"));
}
