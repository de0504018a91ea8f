//! Generates docs/rules.md from the rules' declarations.

use std::fmt::Write as _;
use std::path::PathBuf;

use bindery_rules_api::Rule;

/// The path of the page.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/rules.md")
}

/// Every rule, in the order of the page.
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

/// Renders the page.
pub fn page() -> String {
    let rules = all();
    let mut page = String::from(
        "# Rules\n\n\
         Every decision that Bindery makes is one of these rules. Logs, metrics, `bindery explain` and tests\n\
         refer to them by name. This page is generated from their declarations by `cargo xtask rules`.\n",
    );
    let mut sections: Vec<&str> = Vec::new();
    for rule in &rules {
        if !sections.contains(&section(rule)) {
            sections.push(section(rule));
        }
    }
    for name in sections {
        let _ = write!(page, "\n## {name}\n\n| rule | meaning |\n|---|---|\n");
        for rule in rules.iter().filter(|rule| section(rule) == name) {
            let _ = writeln!(page, "| `{}` | {} |", rule.name, rule.why);
        }
    }
    let _ = write!(page, "\n{} rules.\n", rules.len());
    page
}

/// The section of a rule: the first two parts of a name with three or more, otherwise the first.
fn section(rule: &Rule) -> &'static str {
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
        assert_eq!(names.len(), count, "rule names are unique");
        for rule in super::all() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
            assert!(rule.name.chars().all(is_plain) && rule.name.contains('.'), "{}", rule.name);
            assert!(rule.why.ends_with('.') && rule.why.len() > 20, "{} has a sentence", rule.name);
        }
    }
}
