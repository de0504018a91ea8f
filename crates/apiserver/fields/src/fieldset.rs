//! Sets of field paths, stored in the form of `fieldsV1`, so that no conversion is needed.
//!
//! A node's keys are its children (`f:name`, `k:{"uid":"1"}`, `v:"value"`, `i:0`). The key `.`
//! means that the node itself is in the set. A node without children is always in the set.

use serde_json::{Map, Value};

/// A node of the tree.
pub(crate) type Node = Map<String, Value>;

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    root: Node,
}

impl FieldSet {
    /// Reads FieldsV1.
    pub fn from_fields_v1(fields: Value) -> Result<FieldSet, String> {
        match fields {
            Value::Null => Ok(FieldSet::default()),
            Value::Object(mut root) => {
                root.remove(".");
                check(&root)?;
                Ok(FieldSet { root })
            }
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(format!("not a set of fields: {other}"))
            }
        }
    }

    /// Writes FieldsV1.
    pub fn into_fields_v1(self) -> Value {
        Value::Object(self.root)
    }

    pub(crate) fn of(root: Node) -> FieldSet {
        FieldSet { root }
    }

    pub(crate) fn into_root(self) -> Node {
        self.root
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Whether the set contains no path.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Adds a path, given as elements of FieldsV1 (`f:metadata`, `f:name`).
    pub fn insert(&mut self, path: &[&str]) {
        let mut added = Node::new();
        for element in path.iter().rev() {
            added = Node::from_iter([((*element).to_owned(), Value::Object(added))]);
        }
        self.add(FieldSet { root: added });
    }

    /// Adds all paths of the other set.
    pub fn add(&mut self, other: FieldSet) {
        for (key, theirs) in other.root {
            match (self.root.get_mut(&key).and_then(Value::as_object_mut), theirs) {
                (Some(ours), Value::Object(theirs)) => unite(ours, theirs),
                (None, theirs) => {
                    self.root.insert(key, theirs);
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Removes the paths of the other set, but not the paths below them.
    pub fn subtract(&mut self, other: &FieldSet) {
        if !other.is_empty() {
            retain(&mut self.root, &other.root, subtract);
        }
    }

    /// Removes the paths of the other set and all paths below them.
    pub fn subtract_deep(&mut self, other: &FieldSet) {
        if !other.is_empty() {
            retain(&mut self.root, &other.root, subtract_deep);
        }
    }

    /// The paths that are in both.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet { root: common(&self.root, &other.root) }
    }

    /// All paths in display form (`.metadata.labels.x`), in upstream's order: first the members of
    /// a node, then the paths below them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        list(&self.root, &mut String::new(), &mut paths);
        paths
    }
}

fn check(node: &Node) -> Result<(), String> {
    for (key, value) in node {
        let is_element = key == "." || key.get(1..2) == Some(":") && "fkvi".contains(&key[..1]);
        match value.as_object() {
            Some(inner) if is_element => check(inner)?,
            _ => return Err(format!("not a path element: {key:?}")),
        }
    }
    Ok(())
}

pub(crate) fn child<'a>(node: &'a Node, element: &str) -> Option<&'a Node> {
    node.get(element).and_then(Value::as_object)
}

pub(crate) fn is_member(node: &Node) -> bool {
    node.is_empty() || node.contains_key(".")
}

/// Adds the node itself to the set.
pub(crate) fn mark(node: &mut Node) {
    if !node.is_empty() {
        node.insert(".".to_owned(), Value::Object(Node::new()));
    }
}

fn unite(ours: &mut Node, theirs: Node) {
    let member = is_member(ours) || is_member(&theirs);
    for (key, value) in theirs {
        if key == "." {
            continue;
        }
        match (ours.get_mut(&key).and_then(Value::as_object_mut), value) {
            (Some(ours), Value::Object(theirs)) => unite(ours, theirs),
            (None, value) => {
                ours.insert(key, value);
            }
            (Some(_), _) => {}
        }
    }
    if member {
        mark(ours);
    }
}

/// For each child that both nodes have, `keep` changes it and decides whether it stays.
fn retain(ours: &mut Node, theirs: &Node, keep: impl Fn(&mut Node, &Node) -> bool + Copy) {
    ours.retain(|key, value| match (value.as_object_mut(), child(theirs, key)) {
        (Some(ours), Some(theirs)) => keep(ours, theirs),
        _ => true,
    });
}

/// Returns whether anything remains of the node.
fn subtract(ours: &mut Node, theirs: &Node) -> bool {
    let member = is_member(ours) && !is_member(theirs);
    ours.remove(".");
    retain(ours, theirs, subtract);
    if member {
        mark(ours);
    }
    member || !ours.is_empty()
}

fn subtract_deep(ours: &mut Node, theirs: &Node) -> bool {
    if is_member(theirs) {
        return false;
    }
    let member = is_member(ours);
    ours.remove(".");
    retain(ours, theirs, subtract_deep);
    if member {
        mark(ours);
    }
    member || !ours.is_empty()
}

fn common(ours: &Node, theirs: &Node) -> Node {
    let mut both = Node::new();
    for (key, value) in ours {
        let (Some(ours), Some(theirs)) = (value.as_object(), child(theirs, key)) else { continue };
        if key == "." {
            continue;
        }
        let mut inner = common(ours, theirs);
        let member = is_member(ours) && is_member(theirs);
        if member {
            mark(&mut inner);
        }
        if member || !inner.is_empty() {
            both.insert(key.clone(), Value::Object(inner));
        }
    }
    both
}

fn list(node: &Node, path: &mut String, paths: &mut Vec<String>) {
    let length = path.len();
    let children =
        || node.iter().filter(|(key, _)| *key != ".").filter_map(|(key, value)| Some((key, value.as_object()?)));
    for (key, inner) in children() {
        if is_member(inner) {
            paths.push(format!("{path}{}", display_element(key)));
        }
    }
    for (key, inner) in children().filter(|(_, inner)| !inner.is_empty()) {
        path.push_str(&display_element(key));
        list(inner, path, paths);
        path.truncate(length);
    }
}

fn display_element(key: &str) -> String {
    let (kind, rest) = key.split_at(key.len().min(2));
    match kind {
        "f:" => format!(".{rest}"),
        "v:" => format!("[={rest}]"),
        "k:" => {
            let keys: Node = serde_json::from_str(rest).unwrap_or_default();
            let pairs: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", pairs.join(","))
        }
        _ => format!("[{rest}]"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(fields: Value) -> FieldSet {
        FieldSet::from_fields_v1(fields).expect("a set")
    }

    #[test]
    fn paths_are_displayed_as_upstream_does() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:x": {}}, "f:finalizers": {"v:\"a.b/c\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u1\"}": {}}}, "f:data": {}});
        let expected = [
            ".data",
            ".metadata.labels",
            ".metadata.finalizers[=\"a.b/c\"]",
            ".metadata.labels.x",
            ".metadata.ownerReferences[uid=\"u1\"]",
        ];
        assert_eq!(set(fields).paths(), expected);
    }

    #[test]
    fn malformed_sets_are_rejected() {
        for bad in [json!([]), json!({"metadata": {}}), json!({"f:a": 1}), json!({"f:a": {"x": {}}})] {
            assert!(FieldSet::from_fields_v1(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn subtract_removes_a_member_but_not_its_children() {
        let mut fields = set(json!({"f:a": {".": {}, "f:b": {}}}));
        fields.subtract(&set(json!({"f:a": {}})));
        assert_eq!(fields.clone().into_fields_v1(), json!({"f:a": {"f:b": {}}}));
        fields.subtract_deep(&set(json!({"f:a": {}})));
        assert!(fields.is_empty());
    }

    fn any_set() -> impl Strategy<Value = FieldSet> {
        let path = prop::collection::vec(prop_oneof![Just("f:a"), Just("f:b"), Just("v:1"), Just("k:{\"n\":1}")], 1..4);
        prop::collection::vec(path, 0..8).prop_map(|paths| {
            let mut set = FieldSet::default();
            paths.iter().for_each(|path| set.insert(path));
            set
        })
    }

    fn sorted(set: &FieldSet) -> std::collections::BTreeSet<String> {
        set.paths().into_iter().collect()
    }

    proptest! {
        #[test]
        fn set_operations_match_those_on_sets_of_paths(left in any_set(), right in any_set()) {
            let (ours, theirs) = (sorted(&left), sorted(&right));
            let mut both = left.clone();
            both.add(right.clone());
            prop_assert_eq!(sorted(&both), ours.union(&theirs).cloned().collect());
            let mut rest = left.clone();
            rest.subtract(&right);
            prop_assert_eq!(sorted(&rest), ours.difference(&theirs).cloned().collect());
            prop_assert_eq!(sorted(&left.intersection(&right)), ours.intersection(&theirs).cloned().collect());
        }

        #[test]
        fn sets_survive_a_round_trip_through_json(set in any_set()) {
            let text = set.clone().into_fields_v1().to_string();
            let again = FieldSet::from_fields_v1(serde_json::from_str(&text).expect("JSON")).expect("a set");
            prop_assert_eq!(again, set);
        }
    }
}
