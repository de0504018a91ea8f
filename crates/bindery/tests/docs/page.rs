//! What a page wants executed.

use std::ops::Range;

/// What the commands of a page run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    Local,
    /// `bindery up` with these flags.
    Up(String),
    /// A real API server.
    Cluster,
}

/// A command, and what it prints.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// The line of the command, counted from 1.
    pub line: usize,
    pub command: String,
    pub expected: Vec<String>,
    /// The lines of the expected output, counted from 0.
    pub output: Range<usize>,
    /// Whether it runs until the page ends.
    pub in_background: bool,
}

pub struct Page {
    pub environment: Environment,
    pub steps: Vec<Step>,
}

impl Page {
    /// Reads a page. An error begins with the number of its line.
    pub fn parse(text: &str) -> Result<Page, String> {
        let lines: Vec<&str> = text.lines().collect();
        let (mut environment, mut steps, mut skips) = (None, Vec::new(), false);
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let end = |last: &str| lines[at..].iter().position(|line| line.trim() == last).map(|length| at + length);
            if let Some(words) = line.trim_start().strip_prefix("<!-- docs-test: ") {
                let words = words.strip_suffix(" -->").ok_or_else(|| format!("{}: ` -->` is missing", at + 1))?;
                match words.split_once(' ').unwrap_or((words, "")) {
                    ("skip:", reason) if reason.len() > 5 => skips = true,
                    ("local", "") => environment = Some(Environment::Local),
                    ("cluster", "") => environment = Some(Environment::Cluster),
                    ("up", flags) => environment = Some(Environment::Up(flags.to_owned())),
                    _ => return Err(format!("{}: {words:?} is no environment", at + 1)),
                }
            } else if *line == "<!-- docs-test-setup" {
                let end = end("-->").ok_or_else(|| format!("{}: `-->` is missing", at + 1))?;
                steps.extend((at + 1..end).map(|at| Step::new(at, lines[at].to_owned(), &lines, at + 1..at + 1)));
                at = end;
            } else if line.trim_start() == "```console" {
                let end = end("```").ok_or_else(|| format!("{}: the block does not end", at + 1))?;
                // A block in a list is indented.
                let indent = line.len() - line.trim_start().len();
                let dedented: Vec<&str> = lines.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
                if !std::mem::take(&mut skips) {
                    steps.extend(commands(&dedented, at + 1..end)?);
                }
                at = end;
            } else if !line.trim().is_empty() && skips {
                return Err(format!("{}: a skipped block follows its comment directly", at + 1));
            }
            at += 1;
        }
        match environment {
            Some(environment) => Ok(Page { environment, steps }),
            None if steps.is_empty() => Ok(Page { environment: Environment::Local, steps }),
            None => Err(format!("{}: the page declares no environment (`<!-- docs-test: … -->`)", steps[0].line)),
        }
    }

    pub fn mentions(&self, program: &str) -> bool {
        self.steps.iter().any(|step| step.command.contains(program))
    }
}

impl Step {
    fn new(at: usize, command: String, lines: &[&str], output: Range<usize>) -> Step {
        let expected = lines[output.clone()].iter().map(|line| (*line).to_owned()).collect();
        let (command, background) = match command.strip_suffix('&') {
            Some(rest) if !rest.ends_with('&') => (rest.trim_end().to_owned(), true),
            _ => (command, false),
        };
        let in_background = background || serves(&command);
        Step { line: at + 1, command, expected, output, in_background }
    }
}

/// Whether a command is a server that runs until it is stopped.
fn serves(command: &str) -> bool {
    let program = command.strip_prefix("cargo run -p bindery --").or_else(|| command.strip_prefix("bindery"));
    let words: Vec<&str> = program.unwrap_or_default().split_whitespace().collect();
    let ends = words.iter().any(|word| ["--demo", "--help", "-h", "|"].contains(word));
    words.first().is_some_and(|first| ["up", "apiserver", "controller", "scheduler"].contains(first)) && !ends
}

/// The commands of a block: each begins with `$ `, and continues after a backslash and to the end
/// of a here-document.
fn commands(lines: &[&str], block: Range<usize>) -> Result<Vec<Step>, String> {
    let (mut steps, mut at) = (Vec::new(), block.start);
    while at < block.end {
        let begin = at;
        let Some(command) = lines[at].strip_prefix("$ ") else {
            return Err(format!("{}: a block begins with `$ `", at + 1));
        };
        let mut command = command.to_owned();
        at += 1;
        while at < block.end && command.ends_with('\\') {
            command = format!("{command}\n{}", lines[at]);
            at += 1;
        }
        if let Some((_, word)) = command.clone().split_once("<<") {
            let word = word.split_whitespace().next().unwrap_or_default().trim_matches(['\'', '"']).to_owned();
            while at < block.end && !command.ends_with(&format!("\n{word}")) {
                command = format!("{command}\n{}", lines[at]);
                at += 1;
            }
        }
        let output = at;
        while at < block.end && !lines[at].starts_with("$ ") {
            at += 1;
        }
        steps.push(Step::new(begin, command, lines, output..at));
    }
    Ok(steps)
}

#[test]
fn pages_are_read() {
    let text = "# A\n<!-- docs-test: up --nodes 3 -->\n<!-- docs-test-setup\nkubectl create ns a\n-->\n```console\n$ a \\\n  b\n\
                1\n...\n$ c <<EOF\nd\nEOF\n2\n```\n<!-- docs-test: skip: no Docker here -->\n```console\n$ docker\n```\n\
                ```console\n$ bindery controller\n$ e &\n```\n1. In a list:\n\n   ```console\n   $ f\n   3\n   ```\n";
    let page = Page::parse(text).expect("it is well formed");
    assert_eq!(page.environment, Environment::Up("--nodes 3".into()));
    let step = |line, command: &str, expected: &[&str], output, in_background| Step {
        line,
        command: command.into(),
        expected: expected.iter().map(|&line| line.into()).collect(),
        output,
        in_background,
    };
    let expected = [
        step(4, "kubectl create ns a", &[], 4..4, false),
        step(7, "a \\\n  b", &["1", "..."], 8..10, false),
        step(11, "c <<EOF\nd\nEOF", &["2"], 13..14, false),
        step(21, "bindery controller", &[], 21..21, true),
        step(22, "e", &[], 22..22, true),
        step(27, "f", &["3"], 27..28, false),
    ];
    assert_eq!(page.steps, expected);
}

#[test]
fn mistakes_in_a_page_are_named() {
    let error = |text| Page::parse(text).err().expect("it is not well formed");
    assert_eq!(error("```console\n$ a\n```\n"), "2: the page declares no environment (`<!-- docs-test: … -->`)");
    assert_eq!(error("<!-- docs-test: moon -->\n"), "1: \"moon\" is no environment");
    assert_eq!(error("<!-- docs-test: local -->\n```console\na\n```\n"), "3: a block begins with `$ `");
    assert_eq!(error("<!-- docs-test: local -->\n```console\n$ a\n"), "2: the block does not end");
    assert_eq!(error("<!-- docs-test: skip: no Docker -->\ntext\n"), "2: a skipped block follows its comment directly");
}
