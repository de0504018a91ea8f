//! Version and help of the binary.

use std::process::Command;

#[test]
fn it_prints_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).arg("--version").output().expect("bindery runs");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("bindery {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_is_printed_without_a_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).output().expect("bindery runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: bindery"));
}
