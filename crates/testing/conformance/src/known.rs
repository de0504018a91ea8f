//! The list of known differences, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of the list.
pub const KNOWN_MAX: usize = 20;

/// Shapes that are known to differ, and why.
#[derive(Debug, Default)]
pub struct KnownDifferences(BTreeMap<String, String>);

impl KnownDifferences {
    /// Parses a list with one `shape: reason` per line. Lines that start with `#` are comments.
    pub fn read(text: &str) -> Result<KnownDifferences, String> {
        let mut known = KnownDifferences::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (shape, reason) = line.split_once(':').ok_or_else(|| format!("missing reason: {line}"))?;
            if reason.trim().is_empty() {
                return Err(format!("missing reason: {line}"));
            }
            if known.0.insert(shape.trim().to_owned(), reason.trim().to_owned()).is_some() {
                return Err(format!("{shape} is listed twice"));
            }
        }
        Ok(known)
    }

    /// Checks the list against all shapes and those that differ. Returns its errors.
    pub fn check(&self, shapes: &BTreeSet<&str>, differing: &BTreeSet<&str>) -> Vec<String> {
        let unlisted = differing.iter().filter(|shape| !self.0.contains_key(**shape));
        let mut wrong: Vec<String> = unlisted.map(|shape| format!("{shape} differs but is not listed")).collect();
        for shape in self.0.keys().map(String::as_str) {
            if !shapes.contains(shape) {
                wrong.push(format!("{shape} is listed but does not exist"));
            } else if !differing.contains(shape) {
                wrong.push(format!("{shape} is listed but no longer differs"));
            }
        }
        if self.0.len() > KNOWN_MAX {
            wrong.push(format!("{} shapes are listed, more than the maximum of {KNOWN_MAX}", self.0.len()));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_must_be_exact() {
        let known = KnownDifferences::read("# why\na.b: by design\nc: later\n").expect("valid");
        let shapes = BTreeSet::from(["a.b", "c", "d"]);
        assert!(known.check(&shapes, &BTreeSet::from(["a.b", "c"])).is_empty());
        assert_eq!(
            known.check(&shapes, &BTreeSet::from(["a.b", "d"])),
            ["d differs but is not listed", "c is listed but no longer differs"]
        );
        assert_eq!(known.check(&BTreeSet::from(["c"]), &BTreeSet::from(["c"])).len(), 1);
        assert!(KnownDifferences::read("a.b").is_err() && KnownDifferences::read("a: x\na: y").is_err());
    }

    #[test]
    fn the_list_has_a_maximum_length() {
        let many: String = (0..=KNOWN_MAX).map(|at| format!("s{at}: x\n")).collect();
        let known = KnownDifferences::read(&many).expect("valid");
        let shapes: BTreeSet<&str> = known.0.keys().map(String::as_str).collect();
        assert_eq!(known.check(&shapes, &shapes).len(), 1);
    }
}
