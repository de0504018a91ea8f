//! Allowed topologies of a StorageClass.

use serde::Deserialize;

use crate::{Labels, Name, Requirement};

/// Where volumes of a class may be provisioned: for nodes that match one of the terms, or for all
/// nodes when there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topologies(Box<[Box<[Requirement]>]>);

impl Topologies {
    /// Whether a volume may be provisioned for a node with these labels. An empty term allows
    /// nothing.
    pub fn allow(&self, labels: &Labels) -> bool {
        let is_met = |term: &[Requirement]| !term.is_empty() && term.iter().all(|label| label.is_met_by(labels));
        self.0.is_empty() || self.0.iter().any(|term| is_met(term))
    }

    /// Whether all nodes are allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The terms, each a list of labels and their allowed values.
    pub fn terms(&self) -> impl Iterator<Item = &[Requirement]> {
        self.0.iter().map(|term| &**term)
    }

    /// For each term that a node with these labels could match, the unmet requirements.
    pub fn unmet(&self, labels: &Labels) -> impl Iterator<Item = Vec<&Requirement>> {
        let terms = self.0.iter().filter(|term| !term.is_empty());
        terms.map(|term| term.iter().filter(|label| !label.is_met_by(labels)).collect())
    }
}

/// A term in JSON.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireTopology {
    match_label_expressions: Option<Vec<WireLabel>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireLabel {
    key: Name,
    values: Option<Vec<Name>>,
}

impl FromIterator<WireTopology> for Topologies {
    /// An invalid term is kept as an empty one, which allows nothing: dropping it might allow
    /// everything.
    fn from_iter<I: IntoIterator<Item = WireTopology>>(terms: I) -> Topologies {
        let label = |wire: WireLabel| Requirement::of_labels(wire.key, "In", wire.values.unwrap_or_default());
        let term = |wire: WireTopology| {
            let labels = wire.match_label_expressions.unwrap_or_default().into_iter().map(label);
            labels.collect::<Result<Box<[Requirement]>, String>>().unwrap_or_default()
        };
        Topologies(terms.into_iter().map(term).collect())
    }
}

impl FromIterator<Box<[Requirement]>> for Topologies {
    fn from_iter<I: IntoIterator<Item = Box<[Requirement]>>>(terms: I) -> Topologies {
        Topologies(terms.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_allowed_if_one_term_matches() {
        let topologies = |json: &str| -> Topologies {
            serde_json::from_str::<Vec<WireTopology>>(json).expect("topologies").into_iter().collect()
        };
        let in_zone = |zone: &str| -> Labels {
            [("zone".into(), zone.into()), ("rack".into(), "1".into())].into_iter().collect()
        };
        let zones = r#"{"matchLabelExpressions":[{"key":"zone","values":["a","b"]},{"key":"rack","values":["1"]}]}"#;
        let other = r#"{"matchLabelExpressions":[{"key":"zone","values":["c"]}]}"#;
        let cases = [
            ("[]".to_owned(), "a", true),
            (format!("[{zones}]"), "b", true),
            (format!("[{zones}]"), "c", false),
            (format!("[{zones},{other}]"), "c", true),
            ("[{}]".into(), "a", false),
            (r#"[{"matchLabelExpressions":[{"key":"zone"}]}]"#.into(), "a", false),
        ];
        for (json, zone, is_allowed) in cases {
            assert_eq!(topologies(&json).allow(&in_zone(zone)), is_allowed, "{json} in {zone}");
        }
    }
}
