//! docs/reference/helm-values.md, from the comments in the chart's values.yaml.

use std::fmt::Write as _;
use std::path::Path;

/// A key of values.yaml.
#[derive(Debug, PartialEq)]
struct Value {
    /// The path that `--set` takes.
    path: String,
    /// The default; empty for a key that only groups others.
    default: String,
    comment: String,
}

/// The page.
pub fn page(root: &Path) -> Result<String, String> {
    let mut page = String::from(
        "# Helm values\n\n\
         Every value of the chart in `deploy/chart`, with its default. Set one with `--set PATH=VALUE`, or\n\
         in a file that you pass with `--values`. [Install](../tasks/install.md) lists the ones that you are\n\
         most likely to change.\n\n\
         This page is generated from `deploy/chart/values.yaml` by `cargo xtask docs`.\n\n\
         | value | default | description |\n|---|---|---|\n",
    );
    for Value { path, default, comment } in values(&crate::read(&root.join("deploy/chart/values.yaml"))?) {
        let default = if default.is_empty() { default } else { format!("`{default}`") };
        let _ = writeln!(page, "| `{path}` | {default} | {} |", comment.replace('|', "\\|"));
    }
    Ok(page)
}

/// The keys in their order. The file is ours, so its layout is known: two spaces for each level, a
/// comment directly above its key, lists only as values.
fn values(text: &str) -> Vec<Value> {
    let (mut found, mut comment, mut parents) = (Vec::<Value>::new(), Vec::new(), Vec::<&str>::new());
    for line in text.lines() {
        let content = line.trim_start();
        let depth = (line.len() - content.len()) / 2;
        if content.is_empty() {
            comment.clear();
        } else if let Some(words) = content.strip_prefix('#') {
            comment.push(words.trim());
        } else if content.starts_with("- ") || depth > parents.len() {
            let Some(list) = found.last_mut() else { continue };
            let item = content.trim_start_matches("- ");
            let separator = if list.default.is_empty() { "" } else { ", " };
            let _ = write!(list.default, "{separator}{item}");
        } else if let Some((key, default)) = content.split_once(':') {
            parents.truncate(depth);
            parents.push(key);
            let value =
                Value { path: parents.join("."), default: default.trim().to_owned(), comment: comment.join(" ") };
            found.push(value);
            comment.clear();
        }
    }
    // Groups without a comment say nothing that their members do not say.
    found.retain(|value| !value.default.is_empty() || !value.comment.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_paths_defaults_and_comments() {
        let text = "# About the file.\n\nimage:\n  # Where it is.\n  # In full.\n  name: a\n  tag: \"\"\n\
                    # On which nodes.\ntolerations:\n  - key: b\n    operator: Exists\n# A group.\ngroup:\n  of: 1\n";
        let value = |path: &str, default: &str, comment: &str| Value {
            path: path.into(),
            default: default.into(),
            comment: comment.into(),
        };
        let expected = [
            value("image.name", "a", "Where it is. In full."),
            value("image.tag", "\"\"", ""),
            value("tolerations", "key: b, operator: Exists", "On which nodes."),
            value("group", "", "A group."),
            value("group.of", "1", ""),
        ];
        assert_eq!(values(text), expected);
    }
}
