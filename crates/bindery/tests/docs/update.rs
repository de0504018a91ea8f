//! Writes what commands print into their page.

use crate::page::Step;
use crate::pattern;

/// What it costs to add or to remove a line.
const LINE: usize = 100;

/// A page with other output below some of its commands.
pub fn updated(text: &str, changes: &[(&Step, Vec<String>)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (step, printed) in changes.iter().rev() {
        let command = &lines[step.line - 1];
        let indent = " ".repeat(command.len() - command.trim_start().len());
        let new = corrected(&step.expected, printed).into_iter().map(|line| format!("{indent}{line}"));
        lines.splice(step.output.clone(), new.collect::<Vec<_>>());
    }
    lines.join("\n") + "\n"
}

/// The expected output with the fewest changes that make it match: `...` and lines that were right
/// stay.
fn corrected(expected: &[String], printed: &[String]) -> Vec<String> {
    let (n, m) = (expected.len(), printed.len());
    let is_dots = |i: usize| expected[i].trim() == "...";
    // The cost of correcting the rest, from each line of either side on.
    let mut cost = vec![vec![0; m + 1]; n + 1];
    for i in (0..=n).rev() {
        for j in (0..=m).rev().skip(usize::from(i == n)) {
            let replaced = |cost: &Vec<Vec<usize>>| distance(&expected[i], &printed[j]) + cost[i + 1][j + 1];
            let added = |cost: &Vec<Vec<usize>>| cost[i][j + 1];
            cost[i][j] = match (i < n, j < m) {
                (true, true) if is_dots(i) => cost[i + 1][j].min(added(&cost)),
                (true, true) => replaced(&cost).min(LINE + added(&cost)).min(LINE + cost[i + 1][j]),
                (true, false) => cost[i + 1][j] + if is_dots(i) { 0 } else { LINE },
                (false, true) => LINE + added(&cost),
                (false, false) => 0,
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < n || j < m {
        let rest = cost[i][j];
        if i < n && is_dots(i) && rest == cost[i + 1][j] {
            (i, _) = (i + 1, lines.push("...".to_owned()));
        } else if i < n && is_dots(i) {
            j += 1;
        } else if i < n && j < m && rest == distance(&expected[i], &printed[j]) + cost[i + 1][j + 1] {
            let is_right = pattern::line_matches(&expected[i], &printed[j]);
            lines.push(if is_right { &expected[i] } else { &printed[j] }.clone());
            (i, j) = (i + 1, j + 1);
        } else if j < m && rest == LINE + cost[i][j + 1] {
            (j, _) = (j + 1, lines.push(printed[j].clone()));
        } else {
            i += 1;
        }
    }
    lines
}

/// How different two lines are: 0 if the printed line is right, more the fewer words they share.
fn distance(expected: &str, printed: &str) -> usize {
    if pattern::line_matches(expected, printed) {
        return 0;
    }
    let words: Vec<&str> = printed.split_whitespace().collect();
    let shared = expected.split_whitespace().filter(|word| words.contains(word)).count();
    LINE - LINE.saturating_sub(1) * shared / words.len().max(expected.split_whitespace().count()).max(1)
}

#[test]
fn only_what_is_wrong_is_replaced() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let check = |expected: &str, printed: &str, new: &str| {
        assert_eq!(corrected(&lines(expected), &lines(printed)), lines(new), "{expected:?} {printed:?}");
    };
    check("a [..]\nb", "a 1\nc", "a [..]\nc");
    check("first\n...\nIt goes soon", "first\n2\n3\nIt is deleted soon", "first\n...\nIt is deleted soon");
    check("a\nb", "a\nnew\nb", "a\nnew\nb");
    check("a\nold\nb", "a\nb", "a\nb");
    check("a\n...", "a\nb\nc", "a\n...");
}
