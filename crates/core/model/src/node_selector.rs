//! Node selectors: which nodes can reach a volume, or may run a pod.

use serde::Deserialize;

use crate::selector::{WireExpression, most_selective};
use crate::{Labels, Name, Requirement, Selector};

/// A node selector. A node must match at least one term; without terms none matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSelector(Box<[Term]>);

/// A term of a node selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    /// A node must meet all of these. A term without requirements matches no node.
    Requirements { labels: Box<[Requirement]>, fields: Box<[Field]> },
    /// It is invalid and matches no node.
    Invalid(Box<str>),
}

/// A requirement on a field of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    key: Name,
    value: Name,
    is_wanted: bool,
}

/// The labels of which a node must have one to match a selector, for an index by label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredLabels<'a> {
    /// No single label restricts the nodes.
    Unrestricted,
    /// Only nodes with one of these labels and values can match; none when empty.
    OneOf(Vec<(&'a Name, &'a Name)>),
}

impl<'a> RequiredLabels<'a> {
    /// The required labels of a label selector.
    pub fn of_selector(selector: &'a Selector) -> RequiredLabels<'a> {
        match selector.most_selective() {
            None => RequiredLabels::Unrestricted,
            Some((key, values)) => RequiredLabels::OneOf(values.iter().map(|value| (key, value)).collect()),
        }
    }

    /// The required labels of a node selector, if there is one.
    pub fn of_nodes(selector: Option<&'a NodeSelector>) -> RequiredLabels<'a> {
        let Some(selector) = selector else { return RequiredLabels::Unrestricted };
        let mut all = Vec::new();
        for term in &selector.0 {
            match term {
                Term::Requirements { labels, fields } if labels.is_empty() && fields.is_empty() => {}
                Term::Invalid(_) => {}
                Term::Requirements { labels, .. } => match most_selective(labels) {
                    None => return RequiredLabels::Unrestricted,
                    Some((key, values)) => all.extend(values.iter().map(|value| (key, value))),
                },
            }
        }
        all.sort_unstable();
        all.dedup();
        RequiredLabels::OneOf(all)
    }
}

impl NodeSelector {
    /// A selector with one term that requires all of these.
    pub fn all_of(requirements: Vec<Requirement>) -> NodeSelector {
        NodeSelector([Term::Requirements { labels: requirements.into(), fields: Box::default() }].into())
    }

    /// Whether a node with these labels matches. Without its name, requirements on fields are
    /// ignored.
    pub fn matches(&self, labels: &Labels, name: Option<&Name>) -> bool {
        self.0.iter().any(|term| term.matches(labels, name))
    }

    /// The same, with upstream's error for a node that does not match.
    pub fn check(&self, labels: &Labels, name: Option<&Name>) -> Result<(), String> {
        if self.matches(labels, name) {
            return Ok(());
        }
        let problem = |term: &Term| match term {
            Term::Invalid(problem) => Some(problem.to_string()),
            Term::Requirements { .. } => None,
        };
        Err(self.0.iter().find_map(problem).unwrap_or_else(|| "no matching NodeSelectorTerms".into()))
    }

    /// A selector for the host with these labels, if they include the host name.
    pub fn of_host(labels: &Labels) -> Option<NodeSelector> {
        let host = labels.get(crate::selector::HOST)?.clone();
        let requirement = Requirement::of_labels(Name::new_static(crate::selector::HOST), "In", vec![host]).ok()?;
        Some(NodeSelector::all_of(vec![requirement]))
    }

    /// For each term that a node could match by changing its labels, the unmet requirements.
    pub fn unmet(&self, labels: &Labels, name: Option<&Name>) -> impl Iterator<Item = Vec<&Requirement>> {
        self.0.iter().filter_map(move |term| match term {
            Term::Requirements { labels: required, fields } if !required.is_empty() => {
                let matches_fields = name.is_none_or(|name| fields.iter().all(|field| field.is_met(name)));
                matches_fields.then(|| required.iter().filter(|required| !required.is_met_by(labels)).collect())
            }
            Term::Requirements { .. } | Term::Invalid(_) => None,
        })
    }

    /// The requirements on labels in all terms.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.0.iter().flat_map(|term| match term {
            Term::Requirements { labels, .. } => labels.iter(),
            Term::Invalid(_) => [].iter(),
        })
    }

    /// The same selector with every label requirement changed, and one added to each term.
    #[must_use]
    pub fn translated(&self, change: impl Fn(&Requirement) -> Requirement, more: Option<&Requirement>) -> NodeSelector {
        let term = |term: &Term| match term {
            Term::Invalid(_) => term.clone(),
            Term::Requirements { labels, fields } => {
                let labels = labels.iter().map(&change).chain(more.cloned()).collect();
                Term::Requirements { labels, fields: fields.clone() }
            }
        };
        NodeSelector(self.0.iter().map(term).collect())
    }

    /// Whether one of its [`RequiredLabels`] is sufficient for a node to match: each term requires
    /// one label and nothing else.
    pub fn is_label_sufficient(&self) -> bool {
        self.0.iter().all(|term| match term {
            Term::Invalid(_) => true,
            Term::Requirements { labels, fields } => {
                let is_one = labels.len() == 1 && most_selective(labels).is_some();
                fields.is_empty() && (is_one || labels.is_empty())
            }
        })
    }

    /// The only host that matches, if the host name label restricts it to one.
    pub fn host(&self) -> Option<&Name> {
        match RequiredLabels::of_nodes(Some(self)) {
            RequiredLabels::OneOf(labels) => match labels.as_slice() {
                [(key, host)] if *key == crate::selector::HOST => Some(*host),
                _ => None,
            },
            RequiredLabels::Unrestricted => None,
        }
    }

    /// Whether it has no term.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Term {
    fn matches(&self, labels: &Labels, name: Option<&Name>) -> bool {
        match self {
            Term::Invalid(_) => false,
            Term::Requirements { labels: required, fields } => {
                !(required.is_empty() && fields.is_empty())
                    && required.iter().all(|requirement| requirement.is_met_by(labels))
                    && name.is_none_or(|name| fields.iter().all(|field| field.is_met(name)))
            }
        }
    }
}

impl Field {
    /// Only the name of a node can be selected by; any other field counts as empty.
    fn is_met(&self, name: &Name) -> bool {
        let has = if self.key == "metadata.name" { name.as_str() } else { "" };
        (has == self.value) == self.is_wanted
    }
}

/// A node selector in JSON.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireNodeSelector {
    node_selector_terms: Option<Vec<WireTerm>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireTerm {
    match_expressions: Option<Vec<WireExpression>>,
    match_fields: Option<Vec<WireExpression>>,
}

impl WireNodeSelector {
    pub fn parse(self) -> NodeSelector {
        let terms = self.node_selector_terms.unwrap_or_default().into_iter().map(WireTerm::parse);
        NodeSelector(terms.collect())
    }
}

impl WireTerm {
    fn parse(self) -> Term {
        let expressions = self.match_expressions.unwrap_or_default();
        let fields = self.match_fields.unwrap_or_default();
        let label = |wire: WireExpression| {
            Requirement::of_node(share(wire.key), &wire.operator, wire.values.unwrap_or_default())
        };
        let parsed = || {
            let labels = expressions.into_iter().map(label).collect::<Result<_, String>>()?;
            let fields = fields.into_iter().map(field).collect::<Result<_, String>>()?;
            Ok::<Term, String>(Term::Requirements { labels, fields })
        };
        parsed().unwrap_or_else(|problem| Term::Invalid(problem.into()))
    }
}

fn field(wire: WireExpression) -> Result<Field, String> {
    let is_wanted = match wire.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        other => return Err(format!("operator: Unsupported value: {other:?}: supported values: \"In\", \"NotIn\"")),
    };
    match <[Name; 1]>::try_from(wire.values.unwrap_or_default()) {
        Ok([value]) => Ok(Field { key: wire.key, value, is_wanted }),
        Err(_) => Err("values: Invalid value: must have one element".into()),
    }
}

/// Keys that many volumes have share one string.
fn share(key: Name) -> Name {
    const COMMON: [&str; 5] = [
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.ebs.csi.aws.com/zone",
        "topology.disk.csi.azure.com/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ];
    COMMON.into_iter().find(|common| *common == key).map_or(key, Name::new_static)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: &str) -> NodeSelector {
        serde_json::from_str::<WireNodeSelector>(json).expect("a node selector").parse()
    }

    fn labels(text: &str) -> Labels {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (Name::from(key), Name::from(value))).collect()
    }

    fn one(expression: &str) -> NodeSelector {
        selector(&format!(r#"{{"nodeSelectorTerms":[{{"matchExpressions":[{expression}]}}]}}"#))
    }

    #[test]
    fn operators_match_as_documented() {
        let cases = [
            (r#"{"key":"gen","operator":"In","values":["4","5"]}"#, "gen=5", "gen=6"),
            (r#"{"key":"gen","operator":"NotIn","values":["4"]}"#, "gen=5", "gen=4"),
            (r#"{"key":"gen","operator":"NotIn","values":["4"]}"#, "", "gen=4"),
            (r#"{"key":"gen","operator":"Exists"}"#, "gen=", ""),
            (r#"{"key":"gen","operator":"DoesNotExist"}"#, "", "gen=4"),
            (r#"{"key":"gen","operator":"Gt","values":["9"]}"#, "gen=10", "gen=9"),
            (r#"{"key":"gen","operator":"Lt","values":["9"]}"#, "gen=-10", "gen=9"),
            (r#"{"key":"gen","operator":"Gt","values":["9"]}"#, "gen=10", "gen=ten"),
            (r#"{"key":"gen","operator":"Lt","values":["9"]}"#, "gen=8", ""),
        ];
        for (expression, matching, other) in cases {
            assert!(one(expression).matches(&labels(matching), None), "{expression} on {matching:?}");
            assert!(!one(expression).matches(&labels(other), None), "{expression} on {other:?}");
        }
    }

    #[test]
    fn fields_are_ignored_without_the_node_name() {
        let fields = |operator: &str, values: &str| {
            selector(&format!(
                r#"{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"{operator}","values":[{values}]}}]}}]}}"#
            ))
        };
        let (here, there) = (Name::from("here"), Name::from("there"));
        assert!(fields("In", r#""here""#).matches(&labels(""), Some(&here)));
        assert!(!fields("In", r#""here""#).matches(&labels(""), Some(&there)));
        assert!(!fields("NotIn", r#""here""#).matches(&labels(""), Some(&here)));
        assert!(fields("In", r#""here""#).matches(&labels(""), None));
        for (operator, values) in [("In", r#""a","b""#), ("In", ""), ("Exists", "")] {
            assert!(!fields(operator, values).matches(&labels(""), None), "{operator} [{values}] is invalid");
        }
    }

    #[test]
    fn invalid_term_is_reported_only_when_no_other_matches() {
        let text = r#"{"nodeSelectorTerms":[
            {"matchExpressions":[{"key":"gen","operator":"Near","values":["4"]}]},
            {"matchExpressions":[{"key":"gen","operator":"In","values":["4"]}]}]}"#;
        assert_eq!(selector(text).check(&labels("gen=4"), None), Ok(()));
        let problem = selector(text).check(&labels("gen=5"), None).expect_err("no term matches");
        assert!(problem.contains("Near"), "{problem}");
        for invalid in [
            r#"{"key":"gen","operator":"Gt","values":["four"]}"#,
            r#"{"key":"gen","operator":"Gt","values":["4","5"]}"#,
            r#"{"key":"gen","operator":"In"}"#,
            r#"{"operator":"Exists"}"#,
        ] {
            let problem = one(invalid).check(&labels("gen=5"), None).expect_err("it matches no node");
            assert!(problem.contains("Invalid value"), "{invalid}: {problem}");
        }
    }

    #[test]
    fn required_labels_are_the_most_selective_ones() {
        let required = |text: &str| match RequiredLabels::of_nodes(Some(&selector(text))) {
            RequiredLabels::Unrestricted => "unrestricted".to_owned(),
            RequiredLabels::OneOf(all) => {
                all.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
            }
        };
        let terms = |terms: &[&str]| {
            let terms: Vec<String> = terms.iter().map(|term| format!(r#"{{"matchExpressions":[{term}]}}"#)).collect();
            format!(r#"{{"nodeSelectorTerms":[{}]}}"#, terms.join(","))
        };
        let host = r#"{"key":"kubernetes.io/hostname","operator":"In","values":["a","b"]}"#;
        let zone = r#"{"key":"zone","operator":"In","values":["z"]}"#;
        let any = r#"{"key":"zone","operator":"Exists"}"#;
        assert_eq!(RequiredLabels::of_nodes(None), RequiredLabels::Unrestricted);
        assert_eq!(required("{}"), "", "without terms no node matches");
        assert_eq!(required(r#"{"nodeSelectorTerms":[{}]}"#), "", "an empty term matches no node");
        assert_eq!(required(&terms(&[zone])), "zone=z");
        assert_eq!(required(&terms(&[&format!("{zone},{host}")])), "kubernetes.io/hostname=a kubernetes.io/hostname=b");
        assert_eq!(required(&terms(&[zone, host])), "kubernetes.io/hostname=a kubernetes.io/hostname=b zone=z");
        assert_eq!(required(&terms(&[&format!("{any},{zone}")])), "zone=z");
        assert_eq!(required(&terms(&[zone, any])), "unrestricted");
    }
}
