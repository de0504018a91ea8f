//! docs/reference/rbac.md, from the roles in deploy/manifests and the comments on their rules.

use std::fmt::Write as _;
use std::path::Path;

/// The page.
pub fn page(root: &Path) -> Result<String, String> {
    let mut page = String::from(
        "# RBAC\n\n\
         The permissions that the manifests grant to each part of Bindery, and what each of them is for.\n\
         Tests run every part under exactly these roles on a real API server. They fail if a request is\n\
         denied, and if a permission is granted that the audit log does not show to be used.\n\n\
         The chart grants less if a controller or a feature is disabled: see [Helm values](helm-values.md).\n\n\
         This page is generated from `deploy/manifests` by `cargo xtask docs`.\n",
    );
    let folder = root.join("deploy/manifests");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files {
        let text = crate::read(&file)?;
        let roles: String = text.split("\n---\n").filter_map(role).collect();
        if !roles.is_empty() {
            let name = file.file_name().unwrap_or_default().display();
            let _ = write!(page, "\n## {name}\n{roles}");
        }
    }
    Ok(page)
}

/// The section of a role, if this document is one. The chart writes each rule in the same way: a
/// comment, then apiGroups, resources, resourceNames if there are any, and verbs, a line each.
fn role(document: &str) -> Option<String> {
    let field = |name: &str| document.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
    let kind = field("kind:").filter(|kind| kind.ends_with("Role"))?;
    let place = field("namespace:").map(|namespace| format!(" in `{namespace}`")).unwrap_or_default();
    let head: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let head: Vec<&str> = head.into_iter().filter(|line| !line.starts_with("Source:")).collect();
    let mut section = format!("\n### {kind} `{}`{place}\n\n", field("name:")?);
    if !head.is_empty() {
        let _ = write!(section, "{}\n\n", head.join("\n"));
    }
    section.push_str("| API group | resources | verbs | used for |\n|---|---|---|---|\n");
    let (mut comment, mut group, mut resources) = (String::new(), "", String::new());
    for line in document.lines().skip_while(|line| *line != "rules:") {
        let line = line.trim();
        let list = |name: &str| line.strip_prefix(name)?.trim().strip_prefix('[')?.strip_suffix(']');
        if let Some(words) = line.strip_prefix("# ") {
            let _ = write!(comment, "{words} ");
        } else if let Some(list) = list("- apiGroups:") {
            group = if list == "\"\"" { "core" } else { list };
        } else if let Some(list) = list("resources:") {
            resources = format!("`{}`", list.replace(", ", "`, `"));
        } else if let Some(list) = list("resourceNames:") {
            let _ = write!(resources, " named `{}`", list.replace('"', "").replace(", ", "`, `"));
        } else if let Some(verbs) = list("verbs:") {
            let _ = writeln!(section, "| {group} | {resources} | {verbs} | {} |", comment.trim().replace('|', "\\|"));
            comment.clear();
        }
    }
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_rows_with_their_comments() {
        let document = "# Source: a.yaml\n# What it does.\nkind: Role\nmetadata:\n  name: lease\n  namespace: kube-system\n\
                        rules:\n  # One\n  # lease.\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    \
                        resourceNames: [bindery]\n    verbs: [get, update]\n  - apiGroups: [\"\"]\n    \
                        resources: [pods, nodes]\n    verbs: [list]\n";
        let expected = "\n### Role `lease` in `kube-system`\n\nWhat it does.\n\n\
                        | API group | resources | verbs | used for |\n|---|---|---|---|\n\
                        | coordination.k8s.io | `leases` named `bindery` | get, update | One lease. |\n\
                        | core | `pods`, `nodes` | list |  |\n";
        assert_eq!(role(document).as_deref(), Some(expected));
        assert_eq!(role("kind: Deployment\nmetadata:\n  name: bindery\n"), None);
    }
}
