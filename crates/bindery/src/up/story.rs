//! What the demonstration shows: decisions as they are made, and words between them. In colours on a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use bindery_engine::{Decided, Measured};
use bindery_runtime::{FinishedOperation, LeaseStatus, Observer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::explain::print;

/// Hears the decisions, and hands them on.
pub struct Listener(UnboundedSender<Decided>);

impl Listener {
    /// A listener, and where its decisions arrive.
    pub fn new() -> (Listener, UnboundedReceiver<Decided>) {
        let (send, receive) = unbounded_channel();
        (Listener(send), receive)
    }
}

impl Observer for Listener {
    fn decided(&self, decided: Decided) {
        // NoObserver may listen any more.
        let _ = self.0.send(decided);
    }

    fn handled(&self, _: Duration) {}
    fn measured(&self, _: &Measured) {}
    fn operation_finished(&self, _: &FinishedOperation) {}
    fn lease_observed(&self, _: &LeaseStatus) {}
}

/// Writes on standard output.
pub struct Story {
    in_colours: bool,
}

impl Story {
    /// A story, in colours where there is a terminal to show them.
    pub fn new() -> Story {
        Story { in_colours: std::io::stdout().is_terminal() }
    }

    /// A new chapter.
    pub fn chapter(&self, title: &str) -> Result<(), String> {
        print(&format!("\n{}\n", self.paint("1", title)))
    }

    /// What somebody does.
    pub fn somebody(&self, words: &str) -> Result<(), String> {
        print(&format!("  {} {words}\n", self.paint("36", "+")))
    }

    /// What became of it.
    pub fn outcome(&self, words: &str) -> Result<(), String> {
        print(&format!("  {} {words}\n", self.paint("32", "=")))
    }

    /// Text as it is, set in.
    pub fn text(&self, text: &str) -> Result<(), String> {
        let mut lines = String::new();
        for line in text.lines() {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "      {line}");
        }
        print(&lines)
    }

    /// A decision: about what, by which rule and why, and the step that follows.
    pub fn decision(&self, decided: &Decided) -> Result<(), String> {
        let step = decided.step.map(|step| format!(" -> {}", step.name)).unwrap_or_default();
        let rule = self.paint("33", decided.rule.name);
        let mut text = format!("    {}: {rule}{step}\n", decided.key);
        let why = decided.step.filter(|step| *step != decided.rule).unwrap_or(decided.rule).why;
        let _ = writeln!(text, "      {}", self.paint("2", why));
        if let Some(note) = &decided.note {
            let _ = writeln!(text, "      {}", self.paint("2", note));
        }
        print(&text)
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.in_colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
