//! The differences that are known, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

/// More than this many would make conformance an empty word.
pub const KNOWN_MAX: usize = 20;

/// Shapes that are known to differ, and why.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<String, String>);

impl Known {
    /// Reads a list with a line for each: `shape: reason`. Lines that begin with `#` are for people.
    pub fn read(text: &str) -> Result<Known, String> {
        let mut known = Known::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (shape, reason) = line.split_once(':').ok_or_else(|| format!("no reason is given: {line}"))?;
            if reason.trim().is_empty() {
                return Err(format!("no reason is given: {line}"));
            }
            if known.0.insert(shape.trim().to_owned(), reason.trim().to_owned()).is_some() {
                return Err(format!("{shape} is listed twice"));
            }
        }
        Ok(known)
    }

    /// What is wrong, given the shapes that exist and those that differ; nothing if the list says it as it is.
    pub fn check(&self, shapes: &BTreeSet<&str>, differing: &BTreeSet<&str>) -> Vec<String> {
        let unlisted = differing.iter().filter(|shape| !self.0.contains_key(**shape));
        let mut wrong: Vec<String> = unlisted.map(|shape| format!("{shape} differs, and is not listed")).collect();
        for shape in self.0.keys().map(String::as_str) {
            if !shapes.contains(shape) {
                wrong.push(format!("{shape} is listed, and there is no such shape"));
            } else if !differing.contains(shape) {
                wrong.push(format!("{shape} is listed, and differs no more"));
            }
        }
        if self.0.len() > KNOWN_MAX {
            wrong.push(format!("{} shapes are listed, and at most {KNOWN_MAX} may be", self.0.len()));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_to_be_exact() {
        let known = Known::read("# why\na.b: by design\nc: later\n").expect("well written");
        let shapes = BTreeSet::from(["a.b", "c", "d"]);
        assert!(known.check(&shapes, &BTreeSet::from(["a.b", "c"])).is_empty());
        assert_eq!(
            known.check(&shapes, &BTreeSet::from(["a.b", "d"])),
            ["d differs, and is not listed", "c is listed, and differs no more"]
        );
        assert_eq!(known.check(&BTreeSet::from(["c"]), &BTreeSet::from(["c"])).len(), 1);
        assert!(Known::read("a.b").is_err() && Known::read("a: x\na: y").is_err());
    }

    #[test]
    fn the_list_is_short() {
        let many: String = (0..=KNOWN_MAX).map(|at| format!("s{at}: x\n")).collect();
        let known = Known::read(&many).expect("well written");
        let shapes: BTreeSet<&str> = known.0.keys().map(String::as_str).collect();
        assert_eq!(known.check(&shapes, &shapes).len(), 1);
    }
}
