//! Node selectors: which nodes a volume can be reached from, or a pod may run on.

use serde::Deserialize;

use crate::selector::{WireExpression, anchor};
use crate::{Labels, Name, Requirement, Selector};

/// Which nodes will do: any of the terms must hold. Without terms none will.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSelector(Box<[Term]>);

/// One way for a node to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    /// All of these must hold. A term that demands nothing holds nowhere.
    Demands { labels: Box<[Requirement]>, fields: Box<[Field]> },
    /// It says nothing sensible, and holds nowhere.
    Senseless(Box<str>),
}

/// What is demanded of a field of the node itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    key: Name,
    value: Name,
    is_wanted: bool,
}

/// Where things can be reached from, as far as it can be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchors<'a> {
    /// It takes more than a look at one label to tell.
    Anywhere,
    /// Only from nodes that have one of these labels with this value; from none when there are none.
    At(Vec<(&'a Name, &'a Name)>),
}

impl<'a> Anchors<'a> {
    /// The anchors of what a label selector of nodes selects.
    pub fn of_selector(selector: &'a Selector) -> Anchors<'a> {
        match selector.anchor() {
            None => Anchors::Anywhere,
            Some((key, values)) => Anchors::At(values.iter().map(|value| (key, value)).collect()),
        }
    }

    /// The anchors of what a node selector, if there is one, can be reached from.
    pub fn of_nodes(selector: Option<&'a NodeSelector>) -> Anchors<'a> {
        let Some(selector) = selector else { return Anchors::Anywhere };
        let mut at = Vec::new();
        for term in &selector.0 {
            match term {
                Term::Demands { labels, fields } if labels.is_empty() && fields.is_empty() => {}
                Term::Senseless(_) => {}
                Term::Demands { labels, .. } => match anchor(labels) {
                    None => return Anchors::Anywhere,
                    Some((key, values)) => at.extend(values.iter().map(|value| (key, value))),
                },
            }
        }
        at.sort_unstable();
        at.dedup();
        Anchors::At(at)
    }
}

impl NodeSelector {
    /// A selector of one term that demands all of these.
    pub fn all_of(requirements: Vec<Requirement>) -> NodeSelector {
        NodeSelector([Term::Demands { labels: requirements.into(), fields: Box::default() }].into())
    }

    /// Whether a node with these labels will do. Where its name is not told, what is demanded of its fields is passed over.
    pub fn matches(&self, labels: &Labels, name: Option<&Name>) -> bool {
        self.0.iter().any(|term| term.holds(labels, name))
    }

    /// The same, with upstream's words when it will not do: a term that makes no sense is told of.
    pub fn check(&self, labels: &Labels, name: Option<&Name>) -> Result<(), String> {
        if self.matches(labels, name) {
            return Ok(());
        }
        let problem = |term: &Term| match term {
            Term::Senseless(problem) => Some(problem.to_string()),
            Term::Demands { .. } => None,
        };
        Err(self.0.iter().find_map(problem).unwrap_or_else(|| "no matching NodeSelectorTerms".into()))
    }

    /// A selector of the one host that has these labels, if they tell its name.
    pub fn of_host(labels: &Labels) -> Option<NodeSelector> {
        let host = labels.get(crate::selector::HOST)?.clone();
        let requirement = Requirement::of_labels(Name::new_static(crate::selector::HOST), "In", vec![host]).ok()?;
        Some(NodeSelector::all_of(vec![requirement]))
    }

    /// For each term that labels alone could make hold, the demands that keep it from holding on a node.
    pub fn unmet(&self, labels: &Labels, name: Option<&Name>) -> impl Iterator<Item = Vec<&Requirement>> {
        self.0.iter().filter_map(move |term| match term {
            Term::Demands { labels: demanded, fields } if !demanded.is_empty() => {
                let is_there = name.is_none_or(|name| fields.iter().all(|field| field.is_met(name)));
                is_there.then(|| demanded.iter().filter(|demand| !demand.is_met_by(labels)).collect())
            }
            Term::Demands { .. } | Term::Senseless(_) => None,
        })
    }

    /// All that is demanded of labels, term after term.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.0.iter().flat_map(|term| match term {
            Term::Demands { labels, .. } => labels.iter(),
            Term::Senseless(_) => [].iter(),
        })
    }

    /// The same selector with every demand of a label changed, and more demands in each term.
    #[must_use]
    pub fn translated(&self, change: impl Fn(&Requirement) -> Requirement, more: Option<&Requirement>) -> NodeSelector {
        let term = |term: &Term| match term {
            Term::Senseless(_) => term.clone(),
            Term::Demands { labels, fields } => {
                let labels = labels.iter().map(&change).chain(more.cloned()).collect();
                Term::Demands { labels, fields: fields.clone() }
            }
        };
        NodeSelector(self.0.iter().map(term).collect())
    }

    /// Whether a node that has one of its [`Anchors`] will do: each of its terms demands one label, and nothing else.
    pub fn is_anchored(&self) -> bool {
        self.0.iter().all(|term| match term {
            Term::Senseless(_) => true,
            Term::Demands { labels, fields } => {
                let is_one = labels.len() == 1 && anchor(labels).is_some();
                fields.is_empty() && (is_one || labels.is_empty())
            }
        })
    }

    /// The one host that will do, if it can only be one: by the label that has the name of the host.
    pub fn host(&self) -> Option<&Name> {
        match Anchors::of_nodes(Some(self)) {
            Anchors::At(anchors) => match anchors.as_slice() {
                [(key, host)] if *key == crate::selector::HOST => Some(*host),
                _ => None,
            },
            Anchors::Anywhere => None,
        }
    }

    /// Whether it has no term.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Term {
    fn holds(&self, labels: &Labels, name: Option<&Name>) -> bool {
        match self {
            Term::Senseless(_) => false,
            Term::Demands { labels: demanded, fields } => {
                !(demanded.is_empty() && fields.is_empty())
                    && demanded.iter().all(|requirement| requirement.is_met_by(labels))
                    && name.is_none_or(|name| fields.iter().all(|field| field.is_met(name)))
            }
        }
    }
}

impl Field {
    /// Its name is the only field that a node can be selected by; any other is empty.
    fn is_met(&self, name: &Name) -> bool {
        let has = if self.key == "metadata.name" { name.as_str() } else { "" };
        (has == self.value) == self.is_wanted
    }
}

/// A node selector on the wire.
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
            Ok::<Term, String>(Term::Demands { labels, fields })
        };
        parsed().unwrap_or_else(|problem| Term::Senseless(problem.into()))
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

/// Keys that are on very many volumes share one string.
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
    fn operators_mean_what_they_say() {
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
        for (expression, will_do, will_not) in cases {
            assert!(one(expression).matches(&labels(will_do), None), "{expression} on {will_do:?}");
            assert!(!one(expression).matches(&labels(will_not), None), "{expression} on {will_not:?}");
        }
    }

    #[test]
    fn fields_count_only_where_the_name_is_told() {
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
            assert!(!fields(operator, values).matches(&labels(""), None), "{operator} [{values}] makes no sense");
        }
    }

    #[test]
    fn a_senseless_term_is_told_of_only_when_no_other_holds() {
        let text = r#"{"nodeSelectorTerms":[
            {"matchExpressions":[{"key":"gen","operator":"Near","values":["4"]}]},
            {"matchExpressions":[{"key":"gen","operator":"In","values":["4"]}]}]}"#;
        assert_eq!(selector(text).check(&labels("gen=4"), None), Ok(()));
        let problem = selector(text).check(&labels("gen=5"), None).expect_err("no term holds");
        assert!(problem.contains("Near"), "{problem}");
        for senseless in [
            r#"{"key":"gen","operator":"Gt","values":["four"]}"#,
            r#"{"key":"gen","operator":"Gt","values":["4","5"]}"#,
            r#"{"key":"gen","operator":"In"}"#,
            r#"{"operator":"Exists"}"#,
        ] {
            let problem = one(senseless).check(&labels("gen=5"), None).expect_err("it holds nowhere");
            assert!(problem.contains("Invalid value"), "{senseless}: {problem}");
        }
    }

    #[test]
    fn anchors_are_where_it_can_be_looked_up() {
        let at = |text: &str| match Anchors::of_nodes(Some(&selector(text))) {
            Anchors::Anywhere => "anywhere".to_owned(),
            Anchors::At(at) => at.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        };
        let terms = |terms: &[&str]| {
            let terms: Vec<String> = terms.iter().map(|term| format!(r#"{{"matchExpressions":[{term}]}}"#)).collect();
            format!(r#"{{"nodeSelectorTerms":[{}]}}"#, terms.join(","))
        };
        let host = r#"{"key":"kubernetes.io/hostname","operator":"In","values":["a","b"]}"#;
        let zone = r#"{"key":"zone","operator":"In","values":["z"]}"#;
        let any = r#"{"key":"zone","operator":"Exists"}"#;
        assert_eq!(Anchors::of_nodes(None), Anchors::Anywhere);
        assert_eq!(at("{}"), "", "without terms it is reached from nowhere");
        assert_eq!(at(r#"{"nodeSelectorTerms":[{}]}"#), "", "an empty term holds nowhere");
        assert_eq!(at(&terms(&[zone])), "zone=z");
        assert_eq!(at(&terms(&[&format!("{zone},{host}")])), "kubernetes.io/hostname=a kubernetes.io/hostname=b");
        assert_eq!(at(&terms(&[zone, host])), "kubernetes.io/hostname=a kubernetes.io/hostname=b zone=z");
        assert_eq!(at(&terms(&[&format!("{any},{zone}")])), "zone=z");
        assert_eq!(at(&terms(&[zone, any])), "anywhere");
    }
}
