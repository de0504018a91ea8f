//! Rules: a stable name, and a sentence that explains the rule to an operator.

use std::fmt;

/// A rule, declared once. Logs, metrics, explanations, docs and tests refer to it by name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// The stable name: `claim.unbound.no-volume-fits`.
    pub name: &'static str,
    /// When the rule applies and what follows, for an operator.
    pub why: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the rules of a rule set, and a list of all of them.
#[macro_export]
macro_rules! rules {
    ($($name:ident = $text:literal: $why:literal;)*) => {
        $(#[doc = $why] pub static $name: $crate::Rule = $crate::Rule { name: $text, why: $why };)*

        /// All rules of this rule set, in declaration order.
        pub static ALL: &[&$crate::Rule] = &[$(&$name,)*];
    };
}
