//! Whether output is what a page shows.
//!
//! Ignored is what differs from run to run, so that pages can show real output: the width of
//! columns, ages (`5s`), timestamps, UUIDs, and the ports of servers on this machine.

/// Any lines.
const LINES: &str = "...";
/// Any text within a line.
const TEXT: &str = "[..]";

/// Whether all lines match.
pub fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first.trim() == LINES => (0..=actual.len()).any(|skip| matches(rest, &actual[skip..])),
        Some((first, rest)) => {
            actual.split_first().is_some_and(|(line, lines)| line_matches(first, line) && matches(rest, lines))
        }
    }
}

/// Whether the output begins with what is expected.
pub fn begins(expected: &[String], actual: &[String]) -> bool {
    (0..=actual.len()).any(|length| matches(expected, &actual[..length]))
}

/// Whether one line matches.
pub fn line_matches(expected: &str, actual: &str) -> bool {
    let (expected, actual) = (normal(expected), normal(actual));
    let mut parts = expected.split(TEXT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line without what differs from run to run.
fn normal(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(normal_word).collect();
    words.join(" ")
}

fn normal_word(word: &str) -> String {
    let core = word.trim_matches(|c: char| "()[],;'\"".contains(c));
    let replaced = |with: &str| word.replacen(core, with, 1);
    if is_age(core) {
        return replaced("AGE");
    }
    if is_time(core) {
        return replaced("TIME");
    }
    let mut word = word.to_owned();
    for host in ["127.0.0.1:", "localhost:", "[::1]:"] {
        if let Some((before, after)) = word.clone().split_once(host) {
            word = format!("{before}{host}PORT{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
    }
    without_uuid(&word)
}

/// Ages as kubectl prints them: `5s`, `2m10s`, `3d`.
fn is_age(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let unit = rest[digits..].chars().next();
        if digits == 0 || !unit.is_some_and(|unit| "smhdy".contains(unit)) {
            return false;
        }
        rest = &rest[digits + 1..];
    }
    !word.is_empty()
}

/// RFC 3339: `2026-11-15T23:14:06Z`, with or without fractions of a second.
fn is_time(word: &str) -> bool {
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

/// The word with `UUID` in place of the first UUID in it, as in
/// `pvc-171022e2-1077-4804-9324-a48ce2f42d15`.
fn without_uuid(word: &str) -> String {
    let is_uuid = |text: &str| {
        let groups: Vec<&str> = text.split('-').collect();
        groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
            && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    let found = (0..word.len()).filter_map(|at| word.get(at..at + 36)).find(|text| is_uuid(text));
    found.map_or_else(|| word.to_owned(), |uuid| word.replace(uuid, "UUID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_but_for_what_differs_from_run_to_run() {
        for (expected, actual) in [
            ("NAME   AGE", "NAME AGE"),
            ("node-1   Ready   4s", "node-1  Ready  2m10s"),
            ("pvc-171022e2-1077-4804-9324-a48ce2f42d15 Bound", "pvc-00000000-1077-4804-9324-a48ce2f42d15 Bound"),
            ("serves https://127.0.0.1:6443", "serves https://127.0.0.1:40123"),
            ("at 2026-11-15T23:14:06Z,", "at 2027-01-01T00:00:00.5Z,"),
            ("export KUBECONFIG=[..]/kubeconfig", "export KUBECONFIG=/tmp/kubeconfig"),
            ("a [..] c [..]", "a b c d"),
        ] {
            assert!(line_matches(expected, actual), "{expected:?} {actual:?}");
        }
        for (expected, actual) in
            [("a", "ab"), ("a [..] c", "a b d"), ("10Gi", "11Gi"), ("data 1", "data 2"), ("[..]a", "b"), ("4s", "4x")]
        {
            assert!(!line_matches(expected, actual), "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn dots_are_any_lines() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        for expected in ["a\nb\nc", "...\nc", "a\n...", "a\n...\nc", "a\n...\nb\nc", "..."] {
            assert!(matches(&lines(expected), &lines("a\nb\nc")), "{expected:?}");
        }
        for expected in ["a\nb", "...\nb", "b\n...", "a\n...\nd"] {
            assert!(!matches(&lines(expected), &lines("a\nb\nc")), "{expected:?}");
        }
        assert!(begins(&lines("a\nb"), &lines("a\nb\nc")) && !begins(&lines("b"), &lines("a\nb\nc")));
    }
}
