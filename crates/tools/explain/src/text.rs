//! An explanation as text.

use std::fmt;

use bindery_model::Kind;

use crate::{Bind, Explanation, table};

/// A longer name does not widen the column: it shifts its own line only.
const NAME_WIDTH_MAX: usize = 40;

impl Explanation {
    /// The name, with the namespace if there is one.
    fn title(&self) -> String {
        if self.namespace.is_empty() { self.name.to_string() } else { format!("{}/{}", self.namespace, self.name) }
    }

    fn is_claim(&self) -> bool {
        self.kind == Kind::Claim.as_str()
    }

    /// The lines before the candidates, with labels.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let label = if self.is_claim() { "requests" } else { "provides" };
        facts.extend(self.terms.iter().map(|terms| (label, terms.text())));
        facts.extend(self.note.iter().map(|note| ("note", note.clone())));
        facts.extend(self.events.iter().map(|event| ("event", event.clone())));
        facts.extend(self.bind.as_ref().map(|bind| (if bind.is_done { "bound" } else { "bind" }, bind.to_string())));
        if self.bind.as_ref().is_none_or(|bind| !bind.is_done) || self.next.action != "nothing" {
            facts.push(("next", self.next.text.clone()));
        }
        facts.extend(self.rejected.iter().map(|rejected| ("rejected", rejected.text())));
        facts.extend(self.provisioning.iter().flat_map(|provisioning| provisioning.facts()));
        for decision in &self.controllers {
            let note = decision.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            facts.push(("also", format!("{}{note} [{}]", decision.reason, decision.rule)));
            facts.extend(decision.events.iter().map(|event| ("event", event.clone())));
            if decision.next.action != "nothing" {
                facts.push(("next", decision.next.text.clone()));
            }
        }
        facts
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_done {
            return write!(f, "is bound to {}", self.to);
        }
        write!(f, "would bind to {}", self.to)?;
        if !self.rivals.is_empty() {
            write!(f, ", unless {} binds it first", self.rivals.join(" or "))?;
        }
        Ok(())
    }
}

/// Plain text. The alternate form (`{:#}`) is for a terminal: it makes the first and last line
/// bold, and dims the rule's name and the labels.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bold, dim, plain) = if f.alternate() { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
        let deleting = if self.is_deleting { " (Terminating)" } else { "" };
        writeln!(f, "{bold}{} is {}{deleting}{plain}   {dim}[{}]{plain}", self.title(), self.phase, self.rule)?;
        writeln!(f, "{}", self.reason)?;
        let facts = self.facts();
        let labels = facts.iter().map(|(label, _)| label.len());
        let names = self.candidates.iter().map(|candidate| candidate.name.len().min(NAME_WIDTH_MAX));
        let width = labels.chain(names).max().unwrap_or(0);
        for (label, fact) in &facts {
            writeln!(f, "  {dim}{label:width$}{plain}  {fact}")?;
        }
        for candidate in &self.candidates {
            writeln!(f, "  {:width$}  {}", candidate.name, candidate.why.join("; "))?;
        }
        for more in &self.more {
            writeln!(f, "  {:width$}  {}", format!("{} more", more.count), more.what)?;
        }
        if let Some(matrix) = &self.matrix {
            table::lines(matrix).into_iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        match &self.waits_for {
            Some(sentence) => writeln!(f, "{bold}{sentence}{plain}"),
            None => Ok(()),
        }
    }
}
