//! The language of the project: plain technical English with Kubernetes' own terms, and prose that
//! fits into 100 columns. It covers sources, docs, `--help` texts and rule sentences, which all
//! live in files.

mod repository;

use repository::{File, files, report};

const COLUMNS_MAX: usize = 100;

/// Words and phrases of a private vocabulary that the project once used, each with the plain word.
/// Matched without regard to case, at word boundaries; an underscore separates words.
const IDIOMS: &[(&str, &str)] = &[
    ("lies behind", "backing storage"),
    ("lie behind", "backing storage"),
    ("keeps from going", "protects from deletion"),
    ("does not go", "is stuck Terminating"),
    ("wants to go", "is being deleted"),
    ("is told of", "is notified of"),
    ("are told of", "are notified of"),
    ("say more", "increase log verbosity"),
    ("storekeeper", "provisioning worker"),
    ("caretaker", "node cleanup, background task"),
    ("brain", "engine task"),
    ("companions", "lifecycle controllers"),
    ("lacks guard", "is missing its finalizer"),
    ("flaw", "field error, validation error"),
    ("flaws", "field errors"),
    ("flawed", "invalid"),
    ("whoever", "name the subject"),
    ("somebody", "name the subject"),
    ("nobody", "name the subject"),
    ("to be had", "available"),
    ("can be had", "is available"),
    ("could be had", "is available"),
    ("cannot be had", "is unavailable"),
    ("puts down", "writes"),
    ("put down", "written"),
    ("in vain", "without effect"),
    ("for good", "permanently"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("in order too", "unchanged"),
    ("what stands", "the current state"),
    ("this room", "this crate"),
    ("the rooms", "the crates, the capacity"),
    ("makes no sense", "is invalid"),
    ("a turn of its own", "an attempt"),
    ("of one's own", "your own"),
    ("without more ado", "leave it out"),
    ("word of", "a watch event for"),
    ("another's", "another claim's"),
    ("lets go of", "releases"),
    ("how grave", "severity"),
    ("a person must look", "needs manual repair"),
    ("comes to rest", "becomes idle"),
    ("come to rest", "become idle"),
    ("is told", "is notified, is reported"),
    ("are told", "are notified, are reported"),
    ("be told", "be notified, be reported"),
    ("was told", "was notified, was reported"),
    ("beside", "alongside, next to"),
    ("under way", "in flight, in progress"),
    ("anew", "again"),
    ("mirror", "cache"),
    ("overlay", "pending writes"),
    ("deviation", "difference"),
    ("deviations", "differences"),
    ("the lab", "the test cluster"),
    ("wish", "requirements"),
    ("tenants", "pods"),
    ("seats", "participants"),
];

/// Files in which an idiom is meant literally, with the idiom.
const LITERAL: &[(&str, &str)] = &[
    // This list itself.
    ("xtask/tests/prose.rs", ""),
];

#[test]
fn the_private_vocabulary_is_gone() {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| is_prose(file)) {
        for (index, line) in file.text.lines().enumerate() {
            let words = words(line);
            for (idiom, plain) in IDIOMS.iter().filter(|(idiom, _)| contains(&words, idiom)) {
                let is_literal = |(path, word): &(&str, &str)| *path == file.path && (word.is_empty() || word == idiom);
                if !LITERAL.iter().any(is_literal) {
                    found.push(format!("{}:{}: {idiom:?} (write: {plain})", file.path, index + 1));
                }
            }
        }
    }
    report("texts use plain English", &found);
}

/// Whether a file holds text that people wrote, as opposed to recorded data.
fn is_prose(file: &File) -> bool {
    let endings = [".rs", ".md", ".toml", ".yaml", ".yml", ".tpl", ".proto", ".sh", ".txt", "Dockerfile", ".ci/run"];
    endings.iter().any(|ending| file.path.ends_with(ending)) && !file.path.contains("/data/")
}

/// A line in lower case, with one blank between words and around the line.
fn words(line: &str) -> String {
    let mut words = String::from(" ");
    for c in line.chars() {
        match c {
            'a'..='z' | '0'..='9' | '\'' => words.push(c),
            'A'..='Z' => words.push(c.to_ascii_lowercase()),
            _ if words.ends_with(' ') => {}
            _ => words.push(' '),
        }
    }
    words.push(' ');
    words
}

fn contains(words: &str, idiom: &str) -> bool {
    words.match_indices(idiom).any(|(at, _)| {
        let end = at + idiom.len();
        words[..at].ends_with(' ') && words[end..].starts_with(' ')
    })
}

#[test]
fn prose_fits_into_100_columns() {
    let mut long = Vec::new();
    for file in files().iter().filter(|file| is_prose(file)) {
        let mut fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            fenced ^= line.trim_start_matches([' ', '/', '!']).starts_with("```");
            if line.chars().count() > COLUMNS_MAX && is_wrappable(&file.path, line, fenced) {
                long.push(format!("{}:{}: {} columns", file.path, index + 1, line.chars().count()));
            }
        }
    }
    report("prose is wrapped at 100 columns", &long);
}

/// Whether a line is a sentence that can be wrapped: not a table, a code block, a heading, or a
/// link alone.
fn is_wrappable(path: &str, line: &str, fenced: bool) -> bool {
    let text = line.trim_start();
    let has_blank = |text: &str| text.trim_start_matches(['/', '!', '#', '-', '*', '>', ' ']).contains(' ');
    if fenced {
        return false;
    }
    if path.ends_with(".md") {
        return !text.starts_with(['|', '<', '#']) && !text.contains("]: ") && has_blank(text);
    }
    let marker = if path.ends_with(".rs") || path.ends_with(".proto") { "//" } else { "#" };
    text.starts_with(marker) && !text.contains('|') && has_blank(text)
}

#[test]
fn the_checks_find_what_they_look_for() {
    let finds = |line: &str, idiom: &str| contains(&words(line), idiom);
    assert!(finds("/// What lies behind the volume.", "lies behind"));
    assert!(finds("fn is_told_of()", "is told of"));
    assert!(!finds("the flawless one", "flaw"));
    assert!(finds("lies  behind", "lies behind"));
    let long = "x ".repeat(60);
    assert!(is_wrappable("a.md", &long, false) && !is_wrappable("a.md", &long, true));
    assert!(is_wrappable("a.rs", &format!("/// {long}"), false) && !is_wrappable("a.rs", &long, false));
    assert!(!is_wrappable("a.md", &format!("| {long} |"), false));
}
