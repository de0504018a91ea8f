//! Whether the rules exist that pages mention.

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{Event, Parser};

/// Names that look like those of rules, but are files or fields of objects.
const NOT_RULES: [&str; 9] = ["rs", "md", "yaml", "json", "toml", "sh", "spec", "status", "metadata"];

/// Every rule that a Markdown file mentions and docs/rules.md does not have, as `FILE: RULE`.
pub fn unknown(root: &Path) -> Result<Vec<String>, String> {
    let page = crate::read(&root.join("docs/rules.md"))?;
    let known: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut unknown = Vec::new();
    // Helm values have dotted names, too.
    let files = crate::links::markdown_files(root)?.into_iter().filter(|file| !file.ends_with("helm-values.md"));
    for file in files {
        let text = crate::read(&root.join(&file))?;
        let mentioned = mentions(&text, &known).into_iter().filter(|name| !known.contains(name.as_str()));
        unknown.extend(mentioned.map(|name| format!("{}: {name}", file.display())));
    }
    Ok(unknown)
}

/// The code spans that look like the name of a rule: words with dots, the first one as in a known
/// rule.
fn mentions(text: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let first = |name: &str| name.split('.').next().map(str::to_owned);
    let groups: BTreeSet<String> = known.iter().filter_map(|name| first(name)).collect();
    let is_word = |word: &str| {
        let plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        plain && !word.is_empty() && !NOT_RULES.contains(&word)
    };
    let looks_like_rule = |name: &str| {
        name.contains('.') && name.split('.').all(is_word) && first(name).is_some_and(|group| groups.contains(&group))
    };
    let code = |event| if let Event::Code(code) = event { Some(code.to_string()) } else { None };
    Parser::new(text).filter_map(code).filter(|code| looks_like_rule(code)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_distinguished_from_files_and_fields() {
        let known = BTreeSet::from(["claim.bound.correct", "bind.1-reserve-volume"]);
        let text =
            "`claim.bound.correct` `bind.9` `claim.rs` `claim.spec.volumeName` `claim.status.phase` `a.b` `claim.*`";
        assert_eq!(mentions(text, &known), ["claim.bound.correct", "bind.9"]);
    }
}
