//! Label selectors. Node selectors use the same requirements.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::{Labels, Name};

/// A label selector: labels match if they meet all requirements. An empty selector matches
/// everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector(Vec<Requirement>);

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Name,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Test {
    In(Box<[Name]>),
    NotIn(Box<[Name]>),
    Exists,
    DoesNotExist,
    /// Greater than a number; on nodes only.
    Above(i64),
    /// Less than a number; on nodes only.
    Below(i64),
}

impl Selector {
    /// Adds the requirement that a label has a value.
    pub fn require(&mut self, key: Name, value: Name) {
        self.0.push(Requirement { key, test: Test::In([value].into()) });
    }

    /// Adds a match expression; fails if it is invalid.
    pub fn express(&mut self, key: Name, operator: &str, values: Vec<Name>) -> Result<(), String> {
        self.0.push(Requirement::of_labels(key, operator, values)?);
        Ok(())
    }

    /// The most selective requirement to index matching objects by, if there is one.
    pub(crate) fn most_selective(&self) -> Option<LabelValues<'_>> {
        most_selective(&self.0)
    }

    /// Whether one label is sufficient to match: it requires one of some values and nothing else,
    /// or nothing at all.
    pub fn is_label_sufficient(&self) -> bool {
        self.0.is_empty() || self.0.len() == 1 && self.most_selective().is_some()
    }

    /// Whether labels meet all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.first_unmet(labels).is_none()
    }

    /// All requirements.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.0.iter()
    }

    /// The first requirement that labels do not meet.
    pub fn first_unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.0.iter().find(|requirement| !requirement.is_met(labels.get(&requirement.key)))
    }
}

impl Requirement {
    /// The requirement of a label selector expression; an error if it is invalid.
    pub fn of_labels(key: Name, operator: &str, values: Vec<Name>) -> Result<Requirement, String> {
        let test = match operator {
            "In" | "NotIn" if values.is_empty() => {
                return Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".into());
            }
            "In" => Test::In(values.into()),
            "NotIn" => Test::NotIn(values.into()),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                return Err("values: Invalid value: values set must be empty for exists and does not exist".into());
            }
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::DoesNotExist,
            other => return Err(format!("{other:?} is not a valid label selector operator")),
        };
        Requirement::new(key, test)
    }

    /// The requirement of a node selector expression, which can compare numbers, too.
    pub fn of_node(key: Name, operator: &str, values: Vec<Name>) -> Result<Requirement, String> {
        let number = || match values.as_slice() {
            [value] => value.parse::<i64>().map_err(|_| {
                "values[0]: Invalid value: for 'Gt', 'Lt' operators, the value must be an integer".to_owned()
            }),
            _ => Err("values: Invalid value: for 'Gt', 'Lt' operators, exactly one value is required".to_owned()),
        };
        match operator {
            "Gt" => Requirement::new(key, Test::Above(number()?)),
            "Lt" => Requirement::new(key, Test::Below(number()?)),
            _ => Requirement::of_labels(key, operator, values),
        }
    }

    fn new(key: Name, test: Test) -> Result<Requirement, String> {
        if key.is_empty() {
            return Err("key: Invalid value: \"\": name part must be non-empty".into());
        }
        Ok(Requirement { key, test })
    }

    /// The label's key.
    pub fn key(&self) -> &Name {
        &self.key
    }

    /// The same requirement on another label.
    #[must_use]
    pub fn renamed(&self, key: Name) -> Requirement {
        Requirement { key, test: self.test.clone() }
    }

    /// The values of an `In` or `NotIn` requirement.
    pub fn values(&self) -> &[Name] {
        match &self.test {
            Test::In(values) | Test::NotIn(values) => values,
            Test::Exists | Test::DoesNotExist | Test::Above(_) | Test::Below(_) => &[],
        }
    }

    /// The values of which the label must have one; `None` if it does not require any.
    pub fn required_values(&self) -> Option<&[Name]> {
        match &self.test {
            Test::In(values) => Some(values),
            Test::NotIn(_) | Test::Exists | Test::DoesNotExist | Test::Above(_) | Test::Below(_) => None,
        }
    }

    /// A value of the label that meets it; `None` when the label must be absent.
    pub fn sample_value(&self) -> Option<Name> {
        match &self.test {
            Test::In(values) => values.first().cloned(),
            Test::Exists => Some(Name::default()),
            Test::NotIn(_) | Test::DoesNotExist => None,
            Test::Above(bound) => Some(bound.saturating_add(1).to_string().into()),
            Test::Below(bound) => Some(bound.saturating_sub(1).to_string().into()),
        }
    }

    /// Whether labels meet it.
    pub fn is_met_by(&self, labels: &Labels) -> bool {
        self.is_met(labels.get(&self.key))
    }

    fn is_met(&self, value: Option<&Name>) -> bool {
        let compares = |test: fn(&i64, &i64) -> bool, bound: &i64| {
            value.and_then(|value| value.parse().ok()).is_some_and(|number: i64| test(&number, bound))
        };
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.contains(value),
            (Test::NotIn(values), Some(value)) => !values.contains(value),
            (Test::Exists, Some(_)) | (Test::NotIn(_) | Test::DoesNotExist, None) => true,
            (Test::In(_) | Test::Exists, None) | (Test::DoesNotExist, Some(_)) => false,
            (Test::Above(bound), _) => compares(i64::gt, bound),
            (Test::Below(bound), _) => compares(i64::lt, bound),
        }
    }
}

/// The node label with the host name.
pub(crate) const HOST: &str = "kubernetes.io/hostname";

/// A label key, and the values of which it must have one.
pub(crate) type LabelValues<'a> = (&'a Name, &'a [Name]);

/// The most selective `In` requirement: on the host name, else with the fewest values.
pub(crate) fn most_selective(requirements: &[Requirement]) -> Option<LabelValues<'_>> {
    let candidates =
        requirements.iter().filter_map(|requirement| Some((&requirement.key, requirement.required_values()?)));
    candidates.min_by_key(|(key, values)| (*key != HOST, values.len()))
}

/// A label selector in JSON.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireSelector {
    match_labels: Option<BTreeMap<Name, Name>>,
    match_expressions: Option<Vec<WireExpression>>,
}

/// A selector expression in JSON.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WireExpression {
    pub key: Name,
    pub operator: Name,
    pub values: Option<Vec<Name>>,
}

impl WireSelector {
    pub fn parse(self) -> Result<Selector, String> {
        let mut selector = Selector::default();
        for (key, value) in self.match_labels.unwrap_or_default() {
            selector.require(key, value);
        }
        for expression in self.match_expressions.unwrap_or_default() {
            selector.express(expression.key, &expression.operator, expression.values.unwrap_or_default())?;
        }
        Ok(selector)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::In(values) => write!(f, "{}: wants {}", self.key, values.join(" or ")),
            Test::NotIn(values) => write!(f, "{}: wants anything but {}", self.key, values.join(" and ")),
            Test::Exists => write!(f, "{}: wants any", self.key),
            Test::DoesNotExist => write!(f, "{}: wants none", self.key),
            Test::Above(bound) => write!(f, "{}: wants more than {bound}", self.key),
            Test::Below(bound) => write!(f, "{}: wants less than {bound}", self.key),
        }
    }
}

/// In the syntax of `kubectl --selector`.
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
                Test::Above(bound) => write!(f, "{key}>{bound}")?,
                Test::Below(bound) => write!(f, "{key}<{bound}")?,
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
    fn operators_match_as_documented() {
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
        assert!(Selector::default().matches(&bare), "an empty selector matches everything");
    }

    #[test]
    fn selector_is_displayed_in_kubectl_syntax() {
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
    fn invalid_expressions_are_rejected() {
        let mut selector = Selector::default();
        assert!(selector.express("k".into(), "In", vec![]).is_err());
        assert!(selector.express("k".into(), "Exists", vec!["v".into()]).is_err());
        assert!(selector.express("k".into(), "Near", vec![]).is_err());
        assert!(selector.express("".into(), "Exists", vec![]).is_err());
    }
}
