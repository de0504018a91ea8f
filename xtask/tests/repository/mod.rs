//! The repository's text files, and how a broken rule is reported.

// Each test program compiles this module and uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// A text file of the repository.
pub struct File {
    /// Its path from the repository's root, with slashes.
    pub path: String,
    /// Its contents.
    pub text: String,
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
    }

    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/")
    }

    /// Its numbered lines, without those of a test module at the end.
    pub fn lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        lines.enumerate().map(|(index, line)| (index + 1, line)).filter(|_| !self.is_test())
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository's root exists")
}

/// All text files, except what .gitignore excludes (entries that are directories, by name or by
/// path).
pub fn files() -> Vec<File> {
    let root = root();
    let ignored = std::fs::read_to_string(root.join(".gitignore")).expect(".gitignore is readable");
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).chain([".git"]).collect();
    let mut files = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("the directory is readable") {
            let entry = entry.expect("the directory is readable").path();
            let path = entry.strip_prefix(&root).expect("entries are below the root").to_string_lossy().into_owned();
            let name = path.rsplit('/').next().unwrap_or_default();
            if ignored.iter().any(|ignored| *ignored == path || *ignored == name) {
                continue;
            }
            if entry.is_dir() {
                directories.push(entry);
            } else if let Ok(text) = std::fs::read_to_string(&entry) {
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 50, "the repository was found");
    files
}

/// Fails with every violation of a rule at once.
pub fn report(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule} ({} violations):\n  {}", violations.len(), violations.join("\n  "));
}
