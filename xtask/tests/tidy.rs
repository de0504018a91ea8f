//! Tidiness that compilers do not check, as a plain test: what every file looks like, so that readers find the same everywhere.
//!
//! The heuristics lean on rustfmt: an item ends at the first closing brace that stands as deep as its beginning.

use std::path::{Path, PathBuf};

const LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 80;

/// Files that break a rule for now, each with the rule. One that keeps it again has to leave the list.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// A text file of the project.
struct File {
    /// Its path from the root, with slashes.
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/")
    }

    /// Whether it is written by people, in a format that has no use for tabs.
    fn is_prose(&self) -> bool {
        [".rs", ".toml", ".md", ".yaml", ".yml"].iter().any(|ending| self.path.ends_with(ending))
    }

    /// Its numbered lines, without those of a test module at its end.
    fn lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        lines.enumerate().map(|(place, line)| (place + 1, line)).filter(|_| !self.is_test())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project is somewhere")
}

/// All text files, but for what git ignores: folders, by name or by path.
fn files() -> Vec<File> {
    let root = root();
    let ignored = std::fs::read_to_string(root.join(".gitignore")).expect("a .gitignore");
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).chain([".git"]).collect();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be read") {
            let entry = entry.expect("a folder can be read").path();
            let path = entry.strip_prefix(&root).expect("it is in the project").to_string_lossy().replace('\\', "/");
            let name = path.rsplit('/').next().unwrap_or_default();
            if ignored.iter().any(|ignored| *ignored == path || *ignored == name) {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else if let Ok(text) = std::fs::read_to_string(&entry) {
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 50, "the project was found");
    files
}

/// Fails with everything that breaks a rule, so that all of it can be mended at once.
fn report(rule: &str, broken: Vec<(String, String)>) {
    let is_known = |path: &str| EXCEPTIONS.contains(&(path, rule));
    for (path, _) in EXCEPTIONS.iter().filter(|(_, known)| *known == rule) {
        assert!(broken.iter().any(|(broken, _)| broken == path), "{path} is no exception to {rule:?} any more");
    }
    let news: Vec<String> =
        broken.into_iter().filter(|(path, _)| !is_known(path)).map(|(path, what)| path + &what).collect();
    assert!(news.is_empty(), "{rule}:\n  {}", news.join("\n  "));
}

#[test]
fn every_file_says_what_it_is_for() {
    let broken = files().into_iter().filter(|file| file.is_rust() && !file.text.starts_with("//! "));
    report("a file begins with `//!`", broken.map(|file| (file.path, String::new())).collect());
}

#[test]
fn files_are_short() {
    let length = |file: File| (file.path, file.text.lines().count());
    let long = files().into_iter().filter(File::is_rust).map(length).filter(|(_, lines)| *lines > LINES_MAX);
    report("a file is short", long.map(|(path, lines)| (path, format!(": {lines} lines"))).collect());
}

#[test]
fn functions_are_short() {
    let mut broken = Vec::new();
    for file in files().into_iter().filter(File::is_rust) {
        let lines: Vec<(usize, &str)> = file.lines_outside_tests().collect();
        for (place, (number, line)) in lines.iter().enumerate() {
            if let Some(length) = function_length(&lines[place..])
                && length > FUNCTION_LINES_MAX
            {
                broken.push((file.path.clone(), format!(":{number}: {length} lines: {}", line.trim())));
            }
        }
    }
    report("a function is short", broken);
}

/// How long the function is that begins on the first of these lines, if one does.
fn function_length(lines: &[(usize, &str)]) -> Option<usize> {
    let (_, first) = lines.first()?;
    let code = first.trim_start();
    let indent = &first[..first.len() - code.len()];
    let is_qualifier = |word: &&str| word.starts_with("pub") || ["const", "async", "in", "unsafe"].contains(word);
    let word = code.split(' ').find(|word| !is_qualifier(word))?;
    // `pub(in some::path)` does not occur here; a function without a body ends where its signature does.
    if word != "fn" || code.ends_with(';') || code.ends_with('}') {
        return None;
    }
    let ends = |line: &str| {
        line.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest.starts_with(')') && rest.ends_with(';'))
    };
    lines.iter().position(|(_, line)| ends(line)).map(|last| last + 1)
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let mut broken = Vec::new();
    for file in files().into_iter().filter(File::is_rust) {
        let code = |line: &str| !line.trim_start().starts_with("//") && line.contains(".unwrap()");
        for (number, line) in file.lines_outside_tests().filter(|(_, line)| code(line)) {
            broken.push((file.path.clone(), format!(":{number}: {}", line.trim())));
        }
    }
    report("nothing is unwrapped", broken);
}

#[test]
fn there_are_no_tabs_and_no_blanks_at_the_end_of_a_line() {
    let mut broken = Vec::new();
    for file in files().into_iter().filter(File::is_prose) {
        for (place, line) in file.text.lines().enumerate() {
            if line.contains('\t') || line.ends_with(' ') {
                broken.push((file.path.clone(), format!(":{}", place + 1)));
            }
        }
        if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
            broken.push((file.path, ": it does not end with just one line break".into()));
        }
    }
    report("lines have no tabs and no blanks at their end", broken);
}

#[test]
fn every_file_belongs_to_a_crate() {
    let files = files();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !is_root(&file.path)) {
        let (name, parents) = module(&file.path);
        let declares = |parent: &String| {
            let parent = files.iter().find(|file| file.path == *parent);
            parent.is_some_and(|parent| declares_module(&parent.text, &name))
        };
        // What stands in `tests/NAME/mod.rs` is shared by the test programs beside it.
        let tests = file.path.strip_suffix(&format!("tests/{name}/mod.rs"));
        let is_shared = tests.is_some_and(|folder| {
            let beside = |file: &&File| file.path.starts_with(&format!("{folder}tests/"));
            files.iter().filter(beside).any(|file| declares_module(&file.text, &name))
        });
        if !is_shared && !parents.iter().any(declares) {
            broken.push((file.path.clone(), format!(": no `mod {name};` in {}", parents.join(", "))));
        }
    }
    report("a file is declared by another", broken);
}

/// Whether cargo compiles a file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let from_crate = if parts[0] == "crates" { &parts[2..] } else { &parts[1..] };
    let has_main = |folder: &str| matches!(from_crate, [first, _, "main.rs"] if *first == folder);
    let is_in = |folder: &str| matches!(from_crate, [first, _] if *first == folder);
    matches!(
        from_crate,
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] | ["src", "bin", _, "main.rs"]
    ) || ["tests", "examples", "benches"].into_iter().any(|folder| is_in(folder) || has_main(folder))
}

/// The name of the module that a file is, and the files that could declare it.
fn module(path: &str) -> (String, Vec<String>) {
    let stem = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let parents = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|ending| format!("{folder}{ending}"));
    (name.to_owned(), parents.to_vec())
}

fn declares_module(text: &str, name: &str) -> bool {
    let declared = |line: &str| line.trim().strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name.to_owned());
    text.lines().any(|line| declared(line).is_some_and(|declared| declared == name))
}

/// Words that would tie the project to the place where it was written. They are put together here, so as not to occur themselves.
#[test]
fn nothing_refers_to_where_it_was_written() {
    let hosts =
        [["crates", "io"], ["npmjs", "org"], ["pypi", "org"], ["proxy.golang", "org"]].map(|parts| parts.join("."));
    let words: Vec<String> = hosts.into_iter().chain([["..", "/shared"].concat()]).collect();
    // A lock file names the default registry as the source of every package: that is its format.
    let default_source = ["source = \"registry+https://github.com/rust-lang/", &words[0], "-index\""].concat();
    let mut broken = Vec::new();
    for file in files() {
        for (place, line) in file.text.lines().enumerate().filter(|(_, line)| *line != default_source) {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                broken.push((file.path.clone(), format!(":{}: {word}", place + 1)));
            }
            if file.path.ends_with("Cargo.lock") && line.starts_with("source = ") {
                broken.push((file.path.clone(), format!(":{}: not from the default registry", place + 1)));
            }
        }
    }
    report("nothing refers to where it was written", broken);
}

#[test]
fn every_room_says_what_it_does_not_know() {
    let is_crate_root = |file: &File| file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
    let head = |file: &File| file.text.lines().take_while(|line| line.starts_with("//!")).collect::<String>();
    let broken = files().into_iter().filter(|file| is_crate_root(file) && !head(file).contains("does not know"));
    report("a crate says what it does not know", broken.map(|file| (file.path, String::new())).collect());
}

#[test]
fn the_heuristics_see_what_they_are_to_see() {
    let length = |text: &str| function_length(&text.lines().map(|line| (0, line)).collect::<Vec<_>>());
    assert_eq!(length("fn a() {\n    if b {\n    }\n}\nfn c() {\n}"), Some(4));
    assert_eq!(length("    pub(crate) const fn a(\n        b: u8,\n    ) -> u8 {\n        b\n    }\n}"), Some(5));
    assert_eq!(length("    fn a(\n        b: u8,\n    ) -> u8;\n\n    fn c() {\n    }"), Some(3));
    assert_eq!(length("fn a();"), None);
    assert_eq!(length("let fn_like = 1;"), None);
    assert_eq!(module("crates/a/src/b/c.rs").0, "c");
    assert!(module("crates/a/src/b/c.rs").1.contains(&"crates/a/src/b.rs".into()));
    assert_eq!(module("crates/a/src/b/mod.rs").0, "b");
    assert!(module("crates/a/src/b/mod.rs").1.contains(&"crates/a/src/lib.rs".into()));
    assert!(declares_module("pub(crate) mod a;\n", "a") && !declares_module("mod ab;\nmod a {\n", "a"));
    assert!(is_root("crates/a/tests/b/main.rs") && !is_root("crates/a/tests/b/c.rs"));
}
