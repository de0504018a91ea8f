//! The places of a driver: what its nodes have in their labels.

use std::collections::{BTreeMap, BTreeSet};

/// A place: labels, and what they say. None at all is everywhere.
pub type Place = BTreeMap<String, String>;

/// All places of a driver, from its nodes: the labels of each, and the keys by which the driver tells places apart there. A node
/// that has not all of the labels yet is passed over for now.
pub fn segments<'a>(nodes: impl IntoIterator<Item = (Place, &'a [String])>) -> BTreeSet<Place> {
    let place = |(labels, keys): (Place, &[String])| -> Option<Place> {
        keys.iter().map(|key| Some((key.clone(), labels.get(key)?.clone()))).collect()
    };
    nodes.into_iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_place_share_it() {
        let place = |pairs: &[(&str, &str)]| -> Place {
            pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        let keys = ["zone".to_owned(), "rack".to_owned()];
        let nodes = [
            (place(&[("zone", "z1"), ("rack", "r1"), ("x", "y")]), &keys[..]),
            (place(&[("zone", "z1"), ("rack", "r1")]), &keys[..]),
            (place(&[("zone", "z2"), ("rack", "r1")]), &keys[..]),
            (place(&[("zone", "z3")]), &keys[..]),
        ];
        let expected = [place(&[("zone", "z1"), ("rack", "r1")]), place(&[("zone", "z2"), ("rack", "r1")])];
        assert_eq!(segments(nodes), BTreeSet::from(expected));
        assert_eq!(segments([(place(&[("zone", "z1")]), &[][..])]), BTreeSet::from([Place::new()]));
        assert_eq!(segments([]), BTreeSet::new());
    }
}
