//! No rule without a test: for every crate that declares rules, a test `every_rule_is_exercised`
//! compares the declared rules with those its cases have triggered. This file checks that such a
//! test exists for every declaration, and that docs/rules.md lists every rule.

mod repository;

use repository::{File, files};

/// The name of the tests that compare.
const TEST: &str = "fn every_rule_is_exercised()";

/// A list of rules in a crate's rules.rs.
struct Declaration {
    /// The crate's name in code, for example `bindery_local_disks`.
    crate_name: String,
    /// The module of the list, if the crate has several lists.
    module: Option<String>,
    names: Vec<String>,
}

impl Declaration {
    /// Whether a test compares all of these rules.
    fn is_compared_in(&self, text: &str) -> bool {
        let has = |words: &str| text.contains(words);
        let list = match &self.module {
            Some(module) => has("rules::all()") || has(&format!("rules::{module}")) && has("rules::ALL"),
            None => has("rules::ALL"),
        };
        has(TEST) && has(&format!("use {}::", self.crate_name)) && list
    }
}

fn declarations() -> Vec<Declaration> {
    let mut found = Vec::new();
    for File { path, text } in files() {
        let Some(directory) = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/src/rules.rs")) else {
            continue;
        };
        let crate_name = format!("bindery_{}", directory.rsplit('/').next().unwrap_or_default().replace('-', "_"));
        let mut module = None;
        for line in text.lines() {
            if let Some(opened) = line.strip_prefix("pub mod ") {
                module = opened.strip_suffix(" {").map(str::to_owned);
            } else if line.trim_start().ends_with("rules! {") {
                let names = Vec::new();
                found.push(Declaration { crate_name: crate_name.clone(), module: module.clone(), names });
            } else if let Some((_, rest)) = line.split_once(" = \"")
                && let (Some(last), Some((rule, _))) = (found.last_mut(), rest.split_once("\":"))
            {
                last.names.push(rule.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_declared_rule_is_compared_by_a_test() {
    let files = files();
    let is_compared =
        |declaration: &Declaration| files.iter().any(|file| file.is_test() && declaration.is_compared_in(&file.text));
    let declarations = declarations();
    assert!(declarations.len() > 5, "the declarations were found");
    let forgotten: Vec<String> = declarations
        .iter()
        .filter(|declaration| !is_compared(declaration))
        .map(|declaration| format!("{} {}", declaration.crate_name, declaration.module.as_deref().unwrap_or_default()))
        .collect();
    assert!(forgotten.is_empty(), "no test `{TEST}` compares the rules of {forgotten:?}");
}

#[test]
fn every_declared_rule_is_on_the_page() {
    let page = xtask::rules::page();
    let declared: Vec<String> = declarations().into_iter().flat_map(|declaration| declaration.names).collect();
    let missing: Vec<&String> = declared.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "not in xtask/src/rules.rs: {missing:?}");
    assert!(page.ends_with(&format!("\n{} rules.\n", declared.len())), "this test finds {} rules", declared.len());
}
