//! docs/rules.md: every rule, made from its declaration.

use std::fmt::Write as _;
use std::path::PathBuf;

use bindery_rules_api::Rule;

/// Where the page is.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/rules.md")
}

/// Every rule there is.
fn all() -> Vec<&'static Rule> {
    bindery_binder::rules::ALL
        .iter()
        .copied()
        .chain(bindery_lifecycle::rules::all())
        .chain(bindery_scheduler::rules::ALL.iter().copied())
        .chain(bindery_placement::rules::ALL.iter().copied())
        .chain(bindery_provisioner::rules::ALL.iter().copied())
        .chain(bindery_local_disks::rules::all())
        .collect()
}

/// The page.
pub fn page() -> String {
    let rules = all();
    let mut page = String::from(
        "# The rules\n\n\
         Every decision that Bindery makes is one of these. Logs, metrics, explanations and tests call them by these names, which do\n\
         not change. This page is made from their declarations by `cargo xtask rules`; a test checks that it is current.\n",
    );
    let mut section = "";
    for rule in &rules {
        let group = group(rule);
        if group != section {
            section = group;
            let _ = write!(page, "\n## {section}\n\n| rule | what it does, and why |\n|---|---|\n");
        }
        let _ = writeln!(page, "| `{}` | {} |", rule.name, rule.why);
    }
    let _ = write!(page, "\n{} rules.\n", rules.len());
    page
}

/// The first two parts of a name, where it has three or more; else the first.
fn group(rule: &Rule) -> &'static str {
    let mut dots = rule.name.match_indices('.').map(|(at, _)| at);
    match (dots.next(), dots.next()) {
        (Some(_), Some(second)) => &rule.name[..second],
        (Some(first), None) => &rule.name[..first],
        (None, _) => rule.name,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_current() {
        let written = std::fs::read_to_string(super::path()).expect("docs/rules.md");
        assert!(written == super::page(), "docs/rules.md is not current: run `cargo xtask rules`");
    }

    #[test]
    fn names_are_unique_and_well_formed() {
        let mut names: Vec<&str> = super::all().iter().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "every rule has a name of its own");
        for rule in super::all() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
            assert!(rule.name.chars().all(is_plain) && rule.name.contains('.'), "{}", rule.name);
            assert!(rule.why.ends_with('.') && rule.why.len() > 20, "{} says why in a sentence", rule.name);
        }
    }
}
