//! The direction of dependencies between the groups of crates: the directory tree is the
//! architecture diagram, and this test keeps it true.

use std::collections::BTreeMap;
use std::path::PathBuf;

mod repository;

/// Each group of crates, and the groups its crates may depend on besides their own.
const GROUPS: [(&str, &[&str]); 7] = [
    ("core", &[]),
    ("rules", &["core"]),
    ("edge", &["core", "rules"]),
    ("apiserver", &["core"]),
    ("tools", &["core", "rules"]),
    ("testing", &["core", "rules", "apiserver"]),
    ("bindery", &["core", "rules", "edge", "apiserver", "tools"]),
];

/// Crates inside `core`, lowest layer first: each may depend only on those before it.
const CORE: [&str; 4] = ["model", "cache", "rules-api", "engine"];

/// A crate of ours: its group, its directory, and the crates of ours it is built with.
struct Crate {
    group: String,
    directory: String,
    dependencies: Vec<String>,
}

/// Our crates by package name. Tests may use more than the program does, so `dev-dependencies` are
/// left out.
fn crates() -> BTreeMap<String, Crate> {
    let mut crates = BTreeMap::new();
    for (group, _) in GROUPS {
        let root = repository::root().join("crates").join(group);
        let is_crate = root.join("Cargo.toml").exists();
        let directories: Vec<PathBuf> = if is_crate {
            vec![root]
        } else {
            std::fs::read_dir(root).expect("the group exists").map(|entry| entry.expect("readable").path()).collect()
        };
        for directory in directories {
            let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).expect("a crate has a manifest");
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a crate has a name");
            let dependencies = dependencies(&manifest);
            let directory = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let found = Crate { group: group.to_owned(), directory, dependencies };
            crates.insert(name.trim_matches('"').to_owned(), found);
        }
    }
    crates
}

/// The crates of ours that a manifest lists under `[dependencies]` or `[build-dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if ["[dependencies]", "[build-dependencies]"].contains(&section) && line.starts_with("bindery-") {
            found.push(line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn every_crate_belongs_to_a_group() {
    let groups: Vec<&str> = GROUPS.iter().map(|(group, _)| *group).collect();
    for entry in std::fs::read_dir(repository::root().join("crates")).expect("crates/ exists") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(groups.contains(&name.as_str()), "crates/{name} is no group: list it in xtask/tests/layers.rs");
    }
}

#[test]
fn dependencies_point_from_the_edges_to_the_core() {
    let crates = crates();
    assert!(crates.len() > 15, "the crates were found");
    let mut violations = Vec::new();
    for (name, found) in &crates {
        let (_, allowed) = GROUPS.iter().find(|(group, _)| *group == found.group).expect("the group is listed");
        for dependency in &found.dependencies {
            let Some(target) = crates.get(dependency) else {
                violations.push(format!("{name} depends on {dependency}, which is not in crates/"));
                continue;
            };
            if target.group != found.group && !allowed.contains(&target.group.as_str()) {
                violations.push(format!("{} may not depend on {}: {name} -> {dependency}", found.group, target.group));
            }
        }
    }
    repository::report("dependencies point towards the core", &violations);
}

#[test]
fn crates_of_the_core_are_layered() {
    let crates = crates();
    let layer = |directory: &str| CORE.iter().position(|name| *name == directory).expect("the crate is listed in CORE");
    for (name, found) in crates.iter().filter(|(_, found)| found.group == "core") {
        for dependency in &found.dependencies {
            let below = &crates[dependency].directory;
            assert!(layer(below) < layer(&found.directory), "{name} may not depend on {dependency}");
        }
    }
}
