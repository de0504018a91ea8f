//! Label selectors: which volumes a claim will have.

use std::fmt;

use crate::{Labels, Name};

/// What a claim demands of a volume's labels. All requirements must hold; none is also satisfied by everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// What is demanded of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Name,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<Name>),
    NotIn(Vec<Name>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Demands that a label has a value.
    pub fn require(&mut self, key: Name, value: Name) {
        self.0.push(Requirement { key, test: Test::In(vec![value]) });
    }

    /// Demands what a match expression says; why not, when it says nothing sensible.
    pub fn express(&mut self, key: Name, operator: &str, values: Vec<Name>) -> Result<(), String> {
        let test = match operator {
            "In" | "NotIn" if values.is_empty() => {
                return Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".into());
            }
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                return Err("values: Invalid value: values set must be empty for exists and does not exist".into());
            }
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::DoesNotExist,
            other => return Err(format!("{other:?} is not a valid label selector operator")),
        };
        if key.is_empty() {
            return Err("key: Invalid value: \"\": name part must be non-empty".into());
        }
        self.0.push(Requirement { key, test });
        Ok(())
    }

    /// Whether labels satisfy all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.first_unmet(labels).is_none()
    }

    /// The first requirement that labels do not satisfy.
    pub fn first_unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.0.iter().find(|requirement| !requirement.is_met(labels.get(&requirement.key)))
    }
}

impl Requirement {
    /// The label's key.
    pub fn key(&self) -> &Name {
        &self.key
    }

    fn is_met(&self, value: Option<&Name>) -> bool {
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.contains(value),
            (Test::NotIn(values), Some(value)) => !values.contains(value),
            (Test::Exists, Some(_)) | (Test::NotIn(_) | Test::DoesNotExist, None) => true,
            (Test::In(_) | Test::Exists, None) | (Test::DoesNotExist, Some(_)) => false,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::In(values) => write!(f, "{}: wants {}", self.key, values.join(" or ")),
            Test::NotIn(values) => write!(f, "{}: wants anything but {}", self.key, values.join(" and ")),
            Test::Exists => write!(f, "{}: wants any", self.key),
            Test::DoesNotExist => write!(f, "{}: wants none", self.key),
        }
    }
}

/// In the notation of `kubectl --selector`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { key, test }) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            match test {
                Test::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0])?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => write!(f, "{key}")?,
                Test::DoesNotExist => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| (Name::from(*k), Name::from(*v))).collect()
    }

    #[test]
    fn operators_mean_what_they_say() {
        let ssd = labels(&[("disk", "ssd"), ("zone", "a")]);
        let bare = labels(&[]);
        let cases = [
            ("In", vec!["ssd", "nvme"], true, false),
            ("In", vec!["hdd"], false, false),
            ("NotIn", vec!["ssd"], false, true),
            ("NotIn", vec!["hdd"], true, true),
            ("Exists", vec![], true, false),
            ("DoesNotExist", vec![], false, true),
        ];
        for (operator, values, on_ssd, on_bare) in cases {
            let mut selector = Selector::default();
            let values = values.into_iter().map(Name::from).collect();
            selector.express("disk".into(), operator, values).expect("valid");
            assert_eq!(selector.matches(&ssd), on_ssd, "{operator} on ssd");
            assert_eq!(selector.matches(&bare), on_bare, "{operator} on bare");
        }
        assert!(Selector::default().matches(&bare), "an empty selector takes everything");
    }

    #[test]
    fn it_is_written_as_kubectl_reads_it() {
        let mut selector = Selector::default();
        selector.require("disk".into(), "ssd".into());
        for (operator, values) in [("In", vec!["a", "b"]), ("NotIn", vec!["c"]), ("Exists", vec![])] {
            let values = values.into_iter().map(Name::from).collect();
            selector.express("zone".into(), operator, values).expect("valid");
        }
        selector.express("old".into(), "DoesNotExist", vec![]).expect("valid");
        assert_eq!(selector.to_string(), "disk=ssd,zone in (a,b),zone notin (c),zone,!old");
        let unmet = selector.first_unmet(&labels(&[("disk", "ssd"), ("zone", "d")])).map(Requirement::to_string);
        assert_eq!(unmet.as_deref(), Some("zone: wants a or b"));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut selector = Selector::default();
        assert!(selector.express("k".into(), "In", vec![]).is_err());
        assert!(selector.express("k".into(), "Exists", vec!["v".into()]).is_err());
        assert!(selector.express("k".into(), "Near", vec![]).is_err());
        assert!(selector.express("".into(), "Exists", vec![]).is_err());
    }
}
