//! The topology segments of a driver, taken from node labels.

use std::collections::{BTreeMap, BTreeSet};

/// A topology segment: labels and their values. The empty one covers all nodes.
pub type Segment = BTreeMap<String, String>;

/// All segments of a driver, from each node's labels and the topology keys that the driver reports
/// there. Nodes that do not have all labels yet are skipped.
pub fn segments<'a>(nodes: impl IntoIterator<Item = (Segment, &'a [String])>) -> BTreeSet<Segment> {
    let segment = |(labels, keys): (Segment, &[String])| -> Option<Segment> {
        keys.iter().map(|key| Some((key.clone(), labels.get(key)?.clone()))).collect()
    };
    nodes.into_iter().filter_map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_in_the_same_segment_share_it() {
        let segment = |pairs: &[(&str, &str)]| -> Segment {
            pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        let keys = ["zone".to_owned(), "rack".to_owned()];
        let nodes = [
            (segment(&[("zone", "z1"), ("rack", "r1"), ("x", "y")]), &keys[..]),
            (segment(&[("zone", "z1"), ("rack", "r1")]), &keys[..]),
            (segment(&[("zone", "z2"), ("rack", "r1")]), &keys[..]),
            (segment(&[("zone", "z3")]), &keys[..]),
        ];
        let expected = [segment(&[("zone", "z1"), ("rack", "r1")]), segment(&[("zone", "z2"), ("rack", "r1")])];
        assert_eq!(segments(nodes), BTreeSet::from(expected));
        assert_eq!(segments([(segment(&[("zone", "z1")]), &[][..])]), BTreeSet::from([Segment::new()]));
        assert_eq!(segments([]), BTreeSet::new());
    }
}
