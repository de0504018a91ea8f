//! The container image: the build context that `.dockerignore` describes contains everything that
//! the program is built from, and the builder has the programs that build scripts call.

mod repository;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use repository::{File, files, root};
use serde_json::Value;

/// The rules of `.dockerignore`, in order: the path that a rule names, and whether it includes it.
struct Ignore(Vec<(String, bool)>);

impl Ignore {
    fn parse(text: &str) -> Ignore {
        let rules = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ignore(
            rules
                .map(|rule| match rule.strip_prefix('!') {
                    Some(path) => (path.trim_matches('/').to_owned(), true),
                    None => (rule.trim_matches('/').to_owned(), false),
                })
                .collect(),
        )
    }

    /// Whether a file is sent to the builder: the last rule that matches it, or a directory above
    /// it, decides.
    fn includes(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let matches = |rule: &str| {
            let rule: Vec<&str> = rule.split('/').collect();
            (1..=parts.len()).any(|length| matches_path(&rule, &parts[..length]))
        };
        self.0.iter().rev().find(|(rule, _)| matches(rule)).is_none_or(|(_, includes)| *includes)
    }
}

fn matches_path(rule: &[&str], path: &[&str]) -> bool {
    match rule.split_first() {
        None => path.is_empty(),
        Some((&"**", rest)) => (0..=path.len()).any(|skipped| matches_path(rest, &path[skipped..])),
        Some((first, rest)) => path
            .split_first()
            .is_some_and(|(name, below)| matches_name(first.as_bytes(), name.as_bytes()) && matches_path(rest, below)),
    }
}

fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| matches_name(rest, &name[skipped..])),
        Some((b'?', rest)) => name.split_first().is_some_and(|(_, after)| matches_name(rest, after)),
        Some((byte, rest)) => {
            name.split_first().is_some_and(|(first, after)| first == byte && matches_name(rest, after))
        }
    }
}

/// A copy of the build context, deleted at the end.
struct Context {
    directory: PathBuf,
    files: Vec<File>,
}

impl Context {
    fn copy() -> Context {
        let ignore =
            Ignore::parse(&fs::read_to_string(root().join(".dockerignore")).expect(".dockerignore is readable"));
        let directory = std::env::temp_dir().join(format!("bindery-image-{}", std::process::id()));
        let files: Vec<File> = files().into_iter().filter(|file| ignore.includes(&file.path)).collect();
        for file in &files {
            let path = directory.join(&file.path);
            fs::create_dir_all(path.parent().expect("files are in a directory")).expect("created");
            fs::write(path, &file.text).expect("written");
        }
        Context { directory, files }
    }

    /// The packages of the program without its tests, by directory: the closure of its normal and
    /// build dependencies within the workspace.
    fn packages_of_the_program(&self) -> BTreeSet<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--offline", "--locked"])
            .current_dir(&self.directory)
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "in the build context: {}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
        let packages = metadata["packages"].as_array().expect("a list of packages");
        let local = |name: &str| packages.iter().find(|package| package["name"] == name && package["source"].is_null());
        let (mut found, mut open) = (BTreeSet::new(), vec!["bindery".to_owned()]);
        while let Some(name) = open.pop() {
            let Some(package) = local(&name) else { continue };
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            let directory = manifest.parent().expect("a manifest is in a directory");
            if found.insert(directory.to_path_buf()) {
                let all = package["dependencies"].as_array().expect("a list of dependencies");
                let built = all.iter().filter(|dependency| dependency["kind"] != "dev");
                open.extend(built.map(|dependency| dependency["name"].as_str().expect("a name").to_owned()));
            }
        }
        found
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn the_last_rule_that_matches_a_file_or_its_directory_decides() {
    let ignore = Ignore::parse("# comment\n*\n!crates\n!a/b.txt\n**/tests\n!crates/x/tests/keep*\n");
    let included = ["crates/x/src/lib.rs", "a/b.txt", "crates/x/tests/keep-this", "crates/x/tests.rs"];
    let excluded = ["Cargo.toml", "a/c.txt", "a/b.txt.old", "crates/x/tests/a.rs", "crates/tests", ".git/config"];
    assert_eq!(included.map(|path| ignore.includes(path)), [true; 4]);
    assert_eq!(excluded.map(|path| ignore.includes(path)), [false; 6]);
}

#[test]
fn the_program_can_be_built_from_the_build_context() {
    let context = Context::copy();
    assert!(context.directory.join(".cargo/config.toml").exists(), "it sets the defaults of the memory allocator");
    let packages = context.packages_of_the_program();
    assert!(packages.len() > 10, "the program consists of several crates: {packages:?}");
    let is_built = |path: &Path| packages.iter().any(|package| path.starts_with(package));
    // Sources and what build scripts read; tests are not built.
    let sent: BTreeSet<&str> = context.files.iter().map(|file| file.path.as_str()).collect();
    for file in files().iter().filter(|file| !file.is_test() && is_built(&context.directory.join(&file.path))) {
        assert!(sent.contains(file.path.as_str()), "{} is not in the build context", file.path);
    }
    for file in context.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let path = context.directory.join(&file.path);
        for (line, included) in included_files(file).filter(|_| is_built(&path)) {
            let included = path.parent().expect("a file is in a directory").join(included);
            assert!(included.exists(), "{}:{line} includes {}", file.path, included.display());
        }
    }
}

/// The files that a source file includes when it is compiled.
fn included_files(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.lines_outside_tests().filter_map(|(number, line)| {
        let (_, argument) = line.split_once("include_str!(\"").or_else(|| line.split_once("include_bytes!(\""))?;
        Some((number, argument.split_once('"')?.0))
    })
}

#[test]
fn the_builder_has_the_programs_that_build_scripts_call() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).expect("the Dockerfile is readable");
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is readable");
    let (builder, _) = dockerfile.split_once("cargo build").expect("the program is built");
    // The crate, the program that its build script calls, and that the slim image does not have.
    for (crate_name, program) in [("tikv-jemalloc-sys", "make"), ("cmake", "cmake")] {
        let is_used = lock.contains(&format!("name = \"{crate_name}\"\n"));
        let installed = builder.lines().filter(|line| line.contains("apt-get install"));
        let is_installed = installed.flat_map(|line| line.split_whitespace()).any(|word| word == program);
        assert!(!is_used || is_installed, "{crate_name} needs {program}");
    }
}
