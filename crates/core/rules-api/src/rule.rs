//! Rules: a stable name and a sentence of why.

use std::fmt;

/// A rule, declared once. Logs, metrics, explanations, docs and tests speak of it by its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Its name, which never changes: `claim.unbound.no-volume-fits`.
    pub name: &'static str,
    /// What it does, and why.
    pub why: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the rules of a rule set, and the list of all of them.
#[macro_export]
macro_rules! rules {
    ($($name:ident = $text:literal: $why:literal;)*) => {
        $(#[doc = $why] pub static $name: $crate::Rule = $crate::Rule { name: $text, why: $why };)*

        /// Every rule of this set, in the order of their declaration.
        pub static ALL: &[&$crate::Rule] = &[$(&$name,)*];
    };
}
