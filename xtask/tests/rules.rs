//! No rule without a test. In each crate that declares rules a test `every_rule_is_exercised` compares what its cases have brought about
//! with what is declared; this sees that there is such a test for every declaration, and that the page has them all.

use std::path::{Path, PathBuf};

/// The name of the tests that compare.
const TEST: &str = "fn every_rule_is_exercised()";

/// A list of rules in a crate's rules.rs.
struct Declaration {
    /// As it is called in code: `bindery_local_disks`.
    crate_name: String,
    /// The module that it is in, where there are several.
    module: Option<String>,
    names: Vec<String>,
}

impl Declaration {
    /// Whether a test's text speaks of all of these rules.
    fn is_compared_in(&self, text: &str) -> bool {
        let whole = |words: &str| text.contains(words);
        let list = match &self.module {
            Some(module) => whole("rules::all()") || whole(&format!("rules::{module}")) && whole("rules::ALL"),
            None => whole("rules::ALL"),
        };
        whole(TEST) && whole(&format!("use {}::", self.crate_name)) && list
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")
}

fn declarations() -> Vec<Declaration> {
    let folders = std::fs::read_dir(crates()).expect("crates").map(|entry| entry.expect("a crate").path());
    let mut found = Vec::new();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("src/rules.rs")) else { continue };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut module = None;
        for line in text.lines() {
            if let Some(begun) = line.strip_prefix("pub mod ") {
                module = begun.strip_suffix(" {").map(str::to_owned);
            } else if line.trim_start().ends_with("rules! {") {
                let crate_name = format!("bindery_{name}");
                found.push(Declaration { crate_name, module: module.clone(), names: Vec::new() });
            } else if let Some((_, rest)) = line.split_once(" = \"")
                && let (Some(last), Some((rule, _))) = (found.last_mut(), rest.split_once("\": \""))
            {
                last.names.push(rule.to_owned());
            }
        }
    }
    found
}

/// The text of every file of tests.
fn tests() -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(crates())
        .expect("crates")
        .map(|entry| entry.expect("a crate").path().join("tests"))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(std::fs::read_to_string(path).expect("a text"));
            }
        }
    }
    texts
}

#[test]
fn every_declared_rule_is_compared_with_what_tests_bring_about() {
    let tests = tests();
    let forgotten: Vec<String> = declarations()
        .iter()
        .filter(|declaration| !tests.iter().any(|text| declaration.is_compared_in(text)))
        .map(|declaration| format!("{} {}", declaration.crate_name, declaration.module.as_deref().unwrap_or_default()))
        .collect();
    assert!(forgotten.is_empty(), "no test `{TEST}` is about the rules of {forgotten:?}");
}

#[test]
fn every_declared_rule_is_on_the_page() {
    let page = xtask::rules::page();
    let declared: Vec<String> = declarations().into_iter().flat_map(|declaration| declaration.names).collect();
    let missing: Vec<&String> = declared.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "not in xtask/src/rules.rs: {missing:?}");
    assert!(page.ends_with(&format!("\n{} rules.\n", declared.len())), "this test finds {} rules", declared.len());
}
