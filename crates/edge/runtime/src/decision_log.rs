//! The log of decisions: one line for each change, repeats collapsed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bindery_engine::Decided;
use bindery_model::ObjectKey;

/// How many objects are remembered, to recognise repeats: a few mebibytes at most.
const OBJECTS_MAX: usize = 1 << 16;

/// Logs decisions that change something, or that carry a note, at info, and all others at debug. A
/// decision that repeats the last one of its rule set about its object is logged at debug, and the
/// next different one has the number of repeats.
#[derive(Default)]
pub struct DecisionLog {
    /// What each rule set last decided about each object, and how often it was repeated since.
    last: HashMap<(&'static str, ObjectKey), Last>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Last {
    hash: u64,
    repeats: u64,
}

impl DecisionLog {
    /// Logs a decision.
    pub fn log(&mut self, decided: &Decided) {
        let Decided { key, rule, step, note, .. } = decided;
        let (note, step) = (note.as_deref().unwrap_or_default(), step.map_or("", |step| step.name));
        if step.is_empty() && note.is_empty() {
            return tracing::debug!(%key, rule = rule.name, "decided");
        }
        match self.repeats(decided) {
            None => tracing::debug!(%key, rule = rule.name, step, note, "decided again"),
            Some(0) => tracing::info!(%key, rule = rule.name, step, note, "decided"),
            Some(repeats) => tracing::info!(%key, rule = rule.name, step, note, repeats, "decided"),
        }
    }

    /// How often the decision before was repeated; `None` if this is another repeat of it.
    fn repeats(&mut self, decided: &Decided) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        (decided.rule.name, decided.step.map(|step| step.name), &decided.note).hash(&mut hasher);
        let hash = hasher.finish();
        if self.last.len() >= OBJECTS_MAX {
            self.last.clear();
        }
        let id = (decided.set, decided.key.clone());
        match self.last.get_mut(&id) {
            Some(last) if last.hash == hash => {
                last.repeats += 1;
                None
            }
            Some(last) => {
                let repeats = last.repeats;
                *last = Last { hash, repeats: 0 };
                Some(repeats)
            }
            None => {
                self.last.insert(id, Last { hash, repeats: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_rules_api::Rule;

    static WAIT: Rule = Rule { name: "wait", why: "" };
    static BIND: Rule = Rule { name: "bind", why: "" };

    #[test]
    fn repeated_decision_is_logged_once_and_counted() {
        let mut log = DecisionLog::default();
        let mut repeats = |name: &str, rule: &'static Rule| {
            let key = ObjectKey::volume(name);
            log.repeats(&Decided { set: "binder", key, rule, step: Some(rule), note: None })
        };
        assert_eq!(repeats("a", &WAIT), Some(0));
        assert_eq!(repeats("a", &WAIT), None);
        assert_eq!(repeats("b", &WAIT), Some(0), "objects are counted apart");
        assert_eq!(repeats("a", &WAIT), None);
        assert_eq!(repeats("a", &BIND), Some(2));
        assert_eq!(repeats("a", &WAIT), Some(0));
    }
    #[test]
    fn the_number_of_remembered_objects_is_bounded() {
        let mut log = DecisionLog::default();
        for number in 0..=OBJECTS_MAX {
            let key = ObjectKey::volume(format!("pv-{number}"));
            log.repeats(&Decided { set: "binder", key, rule: &WAIT, step: None, note: None });
            assert!(log.last.len() <= OBJECTS_MAX);
        }
        assert_eq!(log.last.len(), 1, "the log forgets all objects when it is full");
    }
}
