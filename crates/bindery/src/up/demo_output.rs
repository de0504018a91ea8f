//! What the demo prints: headings, actions, decisions and results. In colour on a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use bindery_engine::{Decided, Measured};
use bindery_runtime::{FinishedOperation, LeaseStatus, Observer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::stdout::print;

/// An observer that forwards decisions to a channel.
pub struct DecisionChannel(UnboundedSender<Decided>);

impl DecisionChannel {
    /// The observer, and the receiver of its decisions.
    pub fn new() -> (DecisionChannel, UnboundedReceiver<Decided>) {
        let (send, receive) = unbounded_channel();
        (DecisionChannel(send), receive)
    }
}

impl Observer for DecisionChannel {
    fn decided(&self, decided: Decided) {
        // The receiver is dropped when the demo ends.
        let _ = self.0.send(decided);
    }

    fn handled(&self, _: Duration) {}
    fn measured(&self, _: &Measured) {}
    fn operation_finished(&self, _: &FinishedOperation) {}
    fn lease_observed(&self, _: &LeaseStatus) {}
}

/// Prints to standard output.
pub struct Output {
    in_colour: bool,
}

impl Output {
    /// Uses colours if standard output is a terminal and NO_COLOR is not set.
    pub fn new() -> Output {
        Output { in_colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// A heading.
    pub fn heading(&self, title: &str) -> Result<(), String> {
        print(&format!("\n{}\n", self.paint("1", title)))
    }

    /// What the user does.
    pub fn action(&self, text: &str) -> Result<(), String> {
        print(&format!("  {} {text}\n", self.paint("36", "+")))
    }

    /// The state afterwards.
    pub fn result(&self, text: &str) -> Result<(), String> {
        print(&format!("  {} {text}\n", self.paint("32", "=")))
    }

    /// Indented text.
    pub fn text(&self, text: &str) -> Result<(), String> {
        let mut lines = String::new();
        for line in text.lines() {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "      {line}");
        }
        print(&lines)
    }

    /// A decision: the object, the rule, its sentence, and the step that follows.
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
        if self.in_colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
