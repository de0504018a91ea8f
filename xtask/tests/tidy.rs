//! Style rules that the compiler does not check: what every file looks like.
//!
//! The heuristics rely on rustfmt: an item ends at the first closing brace with the indentation of
//! its first line.

mod repository;

use repository::{File, files, report};

const LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 80;

#[test]
fn every_file_starts_with_its_purpose() {
    let broken = files().into_iter().filter(|file| file.is_rust() && !file.text.starts_with("//! "));
    report("a file starts with a `//!` comment", &broken.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn files_are_short() {
    let length = |file: File| (file.path, file.text.lines().count());
    let long = files().into_iter().filter(File::is_rust).map(length).filter(|(_, lines)| *lines > LINES_MAX);
    let long: Vec<String> = long.map(|(path, lines)| format!("{path}: {lines} lines")).collect();
    report(&format!("a file has at most {LINES_MAX} lines"), &long);
}

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for file in files().into_iter().filter(File::is_rust) {
        let lines: Vec<(usize, &str)> = file.lines_outside_tests().collect();
        for (index, (number, line)) in lines.iter().enumerate() {
            if let Some(length) = function_length(&lines[index..])
                && length > FUNCTION_LINES_MAX
            {
                long.push(format!("{}:{number}: {length} lines: {}", file.path, line.trim()));
            }
        }
    }
    report(&format!("a function has at most {FUNCTION_LINES_MAX} lines"), &long);
}

/// The length of the function that starts on the first of these lines, if one does.
fn function_length(lines: &[(usize, &str)]) -> Option<usize> {
    let (_, first) = lines.first()?;
    let code = first.trim_start();
    let indent = &first[..first.len() - code.len()];
    let is_qualifier = |word: &&str| word.starts_with("pub") || ["const", "async", "in", "unsafe"].contains(word);
    let word = code.split(' ').find(|word| !is_qualifier(word))?;
    // A function without a body ends where its signature does.
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
            broken.push(format!("{}:{number}: {}", file.path, line.trim()));
        }
    }
    report("`unwrap` is for tests only", &broken);
}

#[test]
fn lines_have_no_tabs_and_no_trailing_blanks() {
    let endings = [".rs", ".toml", ".md", ".yaml", ".yml"];
    let mut broken = Vec::new();
    for file in files().into_iter().filter(|file| endings.iter().any(|ending| file.path.ends_with(ending))) {
        for (index, line) in file.text.lines().enumerate() {
            if line.contains('\t') || line.ends_with(' ') {
                broken.push(format!("{}:{}", file.path, index + 1));
            }
        }
        if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
            broken.push(format!("{}: does not end with exactly one line break", file.path));
        }
    }
    report("lines have no tabs and no trailing blanks", &broken);
}

#[test]
fn every_file_is_declared_as_a_module() {
    let files = files();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !is_root(&file.path)) {
        let (name, parents) = module(&file.path);
        let declares = |parent: &String| {
            let parent = files.iter().find(|file| file.path == *parent);
            parent.is_some_and(|parent| declares_module(&parent.text, &name))
        };
        // `tests/NAME/mod.rs` is shared by the test programs next to it.
        let tests = file.path.strip_suffix(&format!("tests/{name}/mod.rs"));
        let is_shared = tests.is_some_and(|directory| {
            let sibling = |file: &&File| file.path.starts_with(&format!("{directory}tests/"));
            files.iter().filter(sibling).any(|file| declares_module(&file.text, &name))
        });
        if !is_shared && !parents.iter().any(declares) {
            broken.push(format!("{}: no `mod {name};` in {}", file.path, parents.join(", ")));
        }
    }
    report("every file is compiled", &broken);
}

/// Whether cargo compiles a file as the root of a crate, a test program or an example.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = match parts[..] {
        ["crates", "bindery", ..] => 2,
        ["crates", ..] => 3,
        ["xtask", "docs", ..] => 2,
        _ => 1,
    };
    let from_crate = &parts[depth..];
    let has_main = |directory: &str| matches!(from_crate, [first, _, "main.rs"] if *first == directory);
    let is_in = |directory: &str| matches!(from_crate, [first, _] if *first == directory);
    matches!(
        from_crate,
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] | ["src", "bin", _, "main.rs"]
    ) || ["tests", "examples", "benches"].into_iter().any(|directory| is_in(directory) || has_main(directory))
}

/// The name of a file's module, and the files that may declare it.
fn module(path: &str) -> (String, Vec<String>) {
    let stem = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    let (directory, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let parents = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|ending| format!("{directory}{ending}"));
    (name.to_owned(), parents.to_vec())
}

fn declares_module(text: &str, name: &str) -> bool {
    let declared = |line: &str| line.trim().strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name.to_owned());
    text.lines().any(|line| declared(line).is_some_and(|declared| declared == name))
}

/// The forbidden words are assembled here, so that this file does not contain them.
#[test]
fn nothing_refers_to_the_machine_it_was_written_on() {
    let hosts =
        [["crates", "io"], ["npmjs", "org"], ["pypi", "org"], ["proxy.golang", "org"]].map(|parts| parts.join("."));
    let words: Vec<String> = hosts.into_iter().chain([["..", "/shared"].concat()]).collect();
    // Lock files name the default registry as the source of every package: that is their format.
    let default_source = ["source = \"registry+https://github.com/rust-lang/", &words[0], "-index\""].concat();
    let mut broken = Vec::new();
    for file in files() {
        for (index, line) in file.text.lines().enumerate().filter(|(_, line)| *line != default_source) {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                broken.push(format!("{}:{}: {word}", file.path, index + 1));
            }
            if file.path.ends_with("Cargo.lock") && line.starts_with("source = ") {
                broken.push(format!("{}:{}: not from the default registry", file.path, index + 1));
            }
        }
    }
    report("nothing refers to the machine it was written on", &broken);
}

#[test]
fn every_crate_states_its_limits() {
    let is_crate_root = |file: &File| file.path.starts_with("crates/") && file.path.ends_with("/src/lib.rs");
    let head = |file: &File| file.text.lines().take_while(|line| line.starts_with("//!")).collect::<String>();
    let states_limits = |file: &File| [" no ", " not ", " nothing "].iter().any(|word| head(file).contains(word));
    let broken = files().into_iter().filter(|file| is_crate_root(file) && !states_limits(file));
    report("a crate's documentation says what it does not do", &broken.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn the_heuristics_recognise_functions_and_modules() {
    let length = |text: &str| function_length(&text.lines().map(|line| (0, line)).collect::<Vec<_>>());
    assert_eq!(length("fn a() {\n    if b {\n    }\n}\nfn c() {\n}"), Some(4));
    assert_eq!(length("    pub(crate) const fn a(\n        b: u8,\n    ) -> u8 {\n        b\n    }\n}"), Some(5));
    assert_eq!(length("    fn a(\n        b: u8,\n    ) -> u8;\n\n    fn c() {\n    }"), Some(3));
    assert_eq!(length("fn a();"), None);
    assert_eq!(length("let fn_like = 1;"), None);
    assert_eq!(module("crates/g/a/src/b/c.rs").0, "c");
    assert!(module("crates/g/a/src/b/c.rs").1.contains(&"crates/g/a/src/b.rs".into()));
    assert_eq!(module("crates/g/a/src/b/mod.rs").0, "b");
    assert!(module("crates/g/a/src/b/mod.rs").1.contains(&"crates/g/a/src/lib.rs".into()));
    assert!(declares_module("pub(crate) mod a;\n", "a") && !declares_module("mod ab;\nmod a {\n", "a"));
    assert!(is_root("crates/g/a/tests/b/main.rs") && !is_root("crates/g/a/tests/b/c.rs"));
    assert!(is_root("crates/bindery/src/main.rs") && !is_root("crates/bindery/src/up/mod.rs"));
}
