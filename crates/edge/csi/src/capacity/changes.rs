//! What may have changed the driver's capacity: volumes that were created or deleted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::segments::Segment;
use crate::coalesced::Coalesced;
use crate::fields::text_or_empty;

/// One term of a volume's node affinity: the allowed values of each label.
type Term = BTreeMap<String, BTreeSet<String>>;

/// The part of the capacity that a volume has taken or returned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// All segments of a class.
    Class(String),
    /// The segments from which a volume of this class is accessible, of every class: classes share
    /// the storage of a segment.
    Segments(String, Vec<Term>),
}

impl Change {
    /// What a volume takes or returns. As csi-provisioner: where it is accessible, or everything of
    /// its class if that is not restricted.
    fn of_volume(class: &str, volume: &Value) -> Change {
        let terms = volume.pointer("/spec/nodeAffinity/required/nodeSelectorTerms").and_then(Value::as_array);
        let terms: Option<Vec<Term>> = terms.into_iter().flatten().map(term).collect();
        match terms.filter(|terms| !terms.is_empty()) {
            Some(terms) => Change::Segments(class.to_owned(), terms),
            None => Change::Class(class.to_owned()),
        }
    }

    /// Whether the capacity of a class in a segment may have changed. `has_segment` says whether
    /// there is any segment that the volume is accessible from.
    pub(super) fn affects(&self, class: &str, segment: &Segment, has_segment: bool) -> bool {
        match self {
            Change::Class(changed) => class == changed,
            Change::Segments(_, terms) if has_segment => is_accessible(terms, segment),
            // A migrated volume, for example, has other labels than the driver's.
            Change::Segments(changed, _) => class == changed,
        }
    }

    /// Whether the volume is accessible from one of these segments.
    pub(super) fn has_segment<'a>(&self, segments: impl IntoIterator<Item = &'a Segment>) -> bool {
        match self {
            Change::Class(_) => false,
            Change::Segments(_, terms) => segments.into_iter().any(|segment| is_accessible(terms, segment)),
        }
    }
}

fn is_accessible(terms: &[Term], segment: &Segment) -> bool {
    let has =
        |(key, values): (&String, &BTreeSet<String>)| segment.get(key).is_some_and(|value| values.contains(value));
    terms.iter().any(|term| term.iter().all(has))
}

/// The term, or `None` if it has expressions that we do not write.
fn term(term: &Value) -> Option<Term> {
    let expressions = term["matchExpressions"].as_array().filter(|expressions| !expressions.is_empty())?;
    let expression = |expression: &Value| {
        let values = expression["values"].as_array().filter(|_| expression["operator"] == "In")?;
        let values = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Some((expression["key"].as_str()?.to_owned(), values))
    };
    expressions.iter().map(expression).collect()
}

/// Changes since the publisher has last looked: at most one for each class and node affinity.
#[derive(Debug, Default)]
pub struct CapacityChanges(Coalesced<Change>);

impl CapacityChanges {
    /// The driver was called to create a volume of a class; the volume if it succeeded.
    pub fn created(&self, class: &str, volume: Option<&Value>) {
        self.0.add(volume.map_or_else(|| Change::Class(class.to_owned()), |volume| Change::of_volume(class, volume)));
    }

    /// The driver was called to delete a volume.
    pub fn deleted(&self, volume: &Value) {
        self.0.add(Change::of_volume(text_or_empty(volume, "/spec/storageClassName"), volume));
    }

    /// Waits for changes, and takes them.
    pub(super) async fn next(&self) -> BTreeSet<Change> {
        self.0.next().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;

    use super::*;

    fn segment(zone: &str) -> Segment {
        Segment::from([("zone".to_owned(), zone.to_owned())])
    }

    fn volume(zones: &[&str]) -> Value {
        let term = |zone: &&str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        let terms: Vec<Value> = zones.iter().map(term).collect();
        json!({"spec": {"storageClassName": "fast", "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})
    }

    /// The classes and zones, of two each, that a change affects.
    fn affected(change: &Change) -> Vec<String> {
        let segments = [segment("a"), segment("b")];
        let has_segment = change.has_segment(&segments);
        let all = ["fast", "slow"].iter().flat_map(|class| segments.iter().map(move |segment| (*class, segment)));
        let affected = all.filter(|(class, segment)| change.affects(class, segment, has_segment));
        affected.map(|(class, segment)| format!("{class}-{}", segment["zone"])).collect()
    }

    #[test]
    fn only_the_segments_of_the_volume_or_its_class_are_affected() {
        let of = |volume: &Value| affected(&Change::of_volume("fast", volume));
        assert_eq!(of(&volume(&["a"])), ["fast-a", "slow-a"], "classes share the storage of a segment");
        assert_eq!(of(&volume(&["a", "b"])).len(), 4);
        assert_eq!(of(&volume(&[])), ["fast-a", "fast-b"], "accessible from everywhere");
        assert_eq!(of(&json!({})), ["fast-a", "fast-b"]);
        assert_eq!(of(&volume(&["elsewhere"])), ["fast-a", "fast-b"], "other labels than the driver's");
        let mut other = volume(&["a"]);
        let terms = &mut other["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
        terms[0]["matchExpressions"][0]["operator"] = "NotIn".into();
        assert_eq!(of(&other), ["fast-a", "fast-b"], "not written by us");
    }

    #[test]
    fn changes_that_repeat_are_stored_once() {
        let changes = CapacityChanges::default();
        for _ in 0..1000 {
            changes.created("fast", None);
            changes.created("fast", Some(&volume(&["a"])));
            changes.deleted(&volume(&["a"]));
        }
        let taken = changes.next().now_or_never().expect("there are changes");
        assert_eq!(taken.len(), 2);
        assert!(changes.next().now_or_never().is_none(), "they were taken");
    }
}
