//! Schema-guided traversal of objects: comparing, listing fields, merging, and removing fields.

use serde_json::{Map, Value};

use crate::FieldSet;
use crate::fieldset::{Node, child, is_member, mark};
use crate::schema::{Shape, Struct, Topology};

/// What differs between two objects.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub removed: FieldSet,
    /// Modified or added; callers do not distinguish the two.
    pub changed: FieldSet,
}

pub(super) fn compare(shape: &Shape, old: &Value, new: &Value) -> Comparison {
    let (removed, changed) = differences(shape, Some(old), Some(new));
    Comparison {
        removed: FieldSet::of(removed.unwrap_or_default()),
        changed: FieldSet::of(changed.unwrap_or_default()),
    }
}

type Nodes = (Option<Node>, Option<Node>);

/// The nodes of removed and of changed fields.
fn differences(shape: &Shape, old: Option<&Value>, new: Option<&Value>) -> Nodes {
    if old == new {
        return (None, None);
    }
    if shape.is_leaf() || (is_empty_value(old) && is_empty_value(new)) {
        return if new.is_none() { (Some(Node::new()), None) } else { (None, Some(Node::new())) };
    }
    let (mut removed, mut changed) = (Node::new(), Node::new());
    {
        let mut set_attribute = |element: String, nodes: Nodes| {
            let (gone, other) = nodes;
            if let Some(gone) = gone {
                removed.insert(element.clone(), Value::Object(gone));
            }
            if let Some(other) = other {
                changed.insert(element, Value::Object(other));
            }
        };
        match shape {
            Shape::List { item, topology } => {
                let (old, new) = (items(item, *topology, old), items(item, *topology, new));
                for (element, value) in &old {
                    set_attribute(element.clone(), differences(item, Some(value), find(&new, element)));
                }
                for (element, value) in new.iter().filter(|(element, _)| find(&old, element).is_none()) {
                    set_attribute(element.clone(), differences(item, None, Some(value)));
                }
            }
            Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => {
                fields(shape, old, new, |name, shape, old, new| {
                    set_attribute(format!("f:{name}"), differences(shape, old, new))
                });
            }
        }
    }
    match (old.is_none(), new.is_none()) {
        (true, _) => mark(&mut changed),
        (_, true) => mark(&mut removed),
        (false, false) => {
            return ((!removed.is_empty()).then_some(removed), (!changed.is_empty()).then_some(changed));
        }
    }
    let is_new = old.is_none();
    ((!is_new || !removed.is_empty()).then_some(removed), (is_new || !changed.is_empty()).then_some(changed))
}

/// Visits the fields that differ.
fn fields<'a>(
    shape: &Shape,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    mut visit: impl FnMut(&str, &Shape, Option<&'a Value>, Option<&'a Value>),
) {
    let (of, mut old_entries) = (shape.as_struct(), entries(old));
    let mut new_entries = entries(new);
    let (mut left, mut right) = (old_entries.next(), new_entries.next());
    loop {
        let (name, old, new) = match (left, right) {
            (None, None) => return,
            (Some((name, old)), None) => (name, Some(old), None),
            (None, Some((name, new))) => (name, None, Some(new)),
            (Some((left, old)), Some((right, new))) => match left.cmp(right) {
                std::cmp::Ordering::Less => (left, Some(old), None),
                std::cmp::Ordering::Greater => (right, None, Some(new)),
                std::cmp::Ordering::Equal => (left, Some(old), Some(new)),
            },
        };
        if old.is_some() {
            left = old_entries.next();
        }
        if new.is_some() {
            right = new_entries.next();
        }
        if old != new
            && !is_managed_fields(of, name)
            && let Some(shape) = inner(shape, of, name)
        {
            visit(name, &shape, old, new);
        }
    }
}

/// `managedFields` itself has no owner.
fn is_managed_fields(of: Option<&Struct>, name: &str) -> bool {
    name == "managedFields" && of.is_some_and(|of| of.name == "ObjectMeta")
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn inner(shape: &Shape, of: Option<&Struct>, name: &str) -> Option<Shape> {
    match (of, shape) {
        (Some(of), _) => of.find(name).map(|(_, field)| field.shape),
        (None, Shape::Map { value, .. }) => Some(**value),
        (None, Shape::Scalar(_) | Shape::Struct { .. } | Shape::List { .. }) => None,
    }
}

/// Missing, null, or an empty map or list.
fn is_empty_value(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
    }
}

fn find<'a>(items: &[(String, &'a Value)], element: &str) -> Option<&'a Value> {
    items.iter().find(|(each, _)| each == element).map(|(_, value)| *value)
}

/// The items of a list with their path elements. Of duplicates only the first is returned.
fn items<'a>(item: &Shape, topology: Topology, list: Option<&'a Value>) -> Vec<(String, &'a Value)> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut items: Vec<(String, &Value)> = Vec::with_capacity(list.len());
    for value in list {
        let Some(element) = element(item, topology, value) else { continue };
        if find(&items, &element).is_none() {
            items.push((element, value));
        }
    }
    items
}

/// The path element of a list item: its value, or its keys.
pub(super) fn element(item: &Shape, topology: Topology, value: &Value) -> Option<String> {
    match topology {
        Topology::Atomic => None,
        Topology::Set => Some(format!("v:{value}")),
        Topology::Keys(names) => {
            let of = item.as_struct()?;
            let mut keys = Node::new();
            for name in names {
                let known = value.get(name).filter(|value| !value.is_null());
                let default = || of.find(name).and_then(|(_, field)| field.default.as_ref());
                if let Some(value) = known.or_else(default) {
                    keys.insert((*name).to_owned(), value.clone());
                }
            }
            (!keys.is_empty()).then(|| format!("k:{}", Value::Object(keys)))
        }
    }
}

/// The fields that an applied object sets.
pub(super) fn field_set(shape: &Shape, value: &Value) -> FieldSet {
    FieldSet::of(given(shape, value))
}

/// The node of a value, without itself; empty for a leaf.
fn given(shape: &Shape, value: &Value) -> Node {
    let mut node = Node::new();
    if shape.is_leaf() {
        return node;
    }
    match shape {
        Shape::List { item, topology } => {
            for (element, value) in items(item, *topology, Some(value)) {
                let mut inner = given(item, value);
                mark(&mut inner);
                node.insert(element, Value::Object(inner));
            }
        }
        Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => {
            let of = shape.as_struct();
            for (name, value) in entries(Some(value)) {
                let Some(shape) = inner(shape, of, name) else { continue };
                if is_managed_fields(of, name) {
                    continue;
                }
                let mut inner = given(&shape, value);
                // An empty list or struct is owned only if it is set explicitly.
                let is_bare = !shape.is_leaf() && inner.is_empty();
                let says_so = value.is_null() || value.as_object().is_some_and(Map::is_empty) || of.is_none();
                if says_so {
                    mark(&mut inner);
                }
                if !is_bare || says_so {
                    node.insert(format!("f:{name}"), Value::Object(inner));
                }
            }
        }
    }
    node
}

/// Merges the applied object into the live one.
pub(super) fn merge(shape: &Shape, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let (live, applied) = match (live, applied) {
        (live, None) => return live.cloned(),
        (None, Some(applied)) if shape.is_leaf() => return Some(applied.clone()),
        (live, Some(applied)) => (live, applied),
    };
    if shape.is_leaf() || (is_empty_value(live) && is_empty_value(Some(applied))) {
        return Some(applied.clone());
    }
    match shape {
        Shape::List { item, topology } => {
            let merged = merge_lists(item, items(item, *topology, live), items(item, *topology, Some(applied)));
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => {
            let of = shape.as_struct();
            let mut merged = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, applied) in entries(Some(applied)) {
                let Some(shape) = inner(shape, of, name) else { continue };
                let value = merge(&shape, merged.get(name), Some(applied));
                if let Some(value) = value {
                    merged.insert(name.clone(), value);
                } else {
                    merged.remove(name);
                }
            }
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
    }
}

/// Merges the items of both lists: those of the applied list in its order, each other item before
/// the item that it preceded.
fn merge_lists(item: &Shape, live: Vec<(String, &Value)>, applied: Vec<(String, &Value)>) -> Vec<Value> {
    let mut shared =
        applied.iter().filter(|(element, _)| find(&live, element).is_some()).map(|(element, _)| element).peekable();
    let mut merged: Vec<Value> = Vec::with_capacity(live.len() + applied.len());
    let (mut l, mut r) = (0, 0);
    let mut done: Vec<&str> = Vec::new();
    while l < live.len() || r < applied.len() {
        if l < live.len() && r < applied.len() {
            let element = &live[l].0;
            if *element == applied[r].0 {
                done.push(element);
                merged.extend(merge(item, Some(live[l].1), Some(applied[r].1)));
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if find(&applied, element).is_some() && shared.peek().is_some_and(|next| *next != element) {
                l += 1;
                continue;
            }
        }
        if l < live.len() {
            let element = &live[l].0;
            if find(&applied, element).is_none() {
                merged.push(live[l].1.clone());
                l += 1;
                continue;
            }
            if done.contains(&element.as_str()) {
                l += 1;
            }
        }
        if r < applied.len() {
            let element = &applied[r].0;
            done.push(element);
            merged.extend(merge(item, find(&live, element), Some(applied[r].1)));
            r += 1;
            if shared.peek().is_some_and(|next| *next == element) {
                shared.next();
            }
        }
    }
    merged
}

/// The object without these fields.
pub(super) fn without(shape: &Shape, value: &Value, fields: &Node) -> Value {
    if shape.is_leaf() || is_empty_value(Some(value)) {
        return if matches!(shape, Shape::Scalar(_)) { value.clone() } else { Value::Null };
    }
    match shape {
        Shape::List { item, topology } => {
            let mut kept = Vec::new();
            for value in value.as_array().map(Vec::as_slice).unwrap_or_default() {
                let node = element(item, *topology, value).and_then(|element| child(fields, &element));
                match node {
                    Some(node) if is_member(node) => {}
                    Some(node) => kept.push(without(item, value, node)),
                    None => kept.push(value.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => {
            let of = shape.as_struct();
            let mut kept = Map::new();
            for (name, value) in entries(Some(value)) {
                match (child(fields, &format!("f:{name}")), inner(shape, of, name)) {
                    (Some(node), _) if is_member(node) => {}
                    (Some(node), Some(shape)) => {
                        kept.insert(name.clone(), without(&shape, value, node));
                    }
                    (_, _) => {
                        kept.insert(name.clone(), value.clone());
                    }
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
    }
}

/// Adds every struct field that leads to a member of the set.
pub(super) fn with_named_fields(shape: &Shape, set: &FieldSet) -> FieldSet {
    FieldSet::of(named(shape, set.root()))
}

fn named(shape: &Shape, node: &Node) -> Node {
    let of = shape.as_struct();
    let mut marked = Node::new();
    for (element, value) in node {
        let Value::Object(child) = value else { continue };
        let name = element.strip_prefix("f:");
        let shape = match (shape, name) {
            (Shape::List { item, .. }, None) => Some(**item),
            (_, Some(name)) => inner(shape, of, name),
            (_, None) => None,
        };
        let mut inner = shape.map_or_else(|| child.clone(), |shape| named(&shape, child));
        if name.is_some_and(|name| of.is_some_and(|of| of.find(name).is_some())) || child.contains_key(".") {
            mark(&mut inner);
        }
        if element != "." {
            marked.insert(element.clone(), Value::Object(inner));
        }
    }
    marked
}
