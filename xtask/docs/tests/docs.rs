//! The documentation in the repository: generated pages are current, links lead somewhere, and
//! rules exist.

#[test]
fn every_link_leads_somewhere() {
    let broken = xtask_docs::links::broken(&xtask_docs::root()).expect("the repository can be read");
    assert!(broken.is_empty(), "broken links:\n  {}", broken.join("\n  "));
}

#[test]
fn pages_generated_from_the_chart_are_current() {
    let root = xtask_docs::root();
    for (path, text) in xtask_docs::generated_pages(&root).expect("the chart can be read") {
        let written = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(written == text, "{path} is not current: run `cargo xtask docs`");
    }
}

#[test]
fn every_rule_that_a_page_mentions_exists() {
    let unknown = xtask_docs::rules::unknown(&xtask_docs::root()).expect("the repository can be read");
    assert!(unknown.is_empty(), "docs/rules.md has no such rule:\n  {}", unknown.join("\n  "));
}

#[test]
fn every_example_manifest_is_used_by_a_page() {
    let root = xtask_docs::root();
    let pages: String = xtask_docs::links::markdown_files(&root)
        .expect("the repository can be read")
        .into_iter()
        .map(|file| std::fs::read_to_string(root.join(file)).expect("a page can be read"))
        .collect();
    for entry in std::fs::read_dir(root.join("examples/manifests")).expect("examples/manifests can be read") {
        let name = entry.expect("examples/manifests can be read").file_name();
        let path = format!("examples/manifests/{}", name.display());
        assert!(pages.contains(&path), "no page uses {path}");
    }
}
