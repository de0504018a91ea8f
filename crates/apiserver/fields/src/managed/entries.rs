//! The entries of `metadata.managedFields`.

use serde_json::{Value, json};

use super::Writer;
use crate::FieldSet;
use crate::fieldset::Node;

/// With more managers that update, the oldest entries are merged.
const UPDATERS_MAX: usize = 10;

/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// An entry of the list, in the form in which it is stored, because most entries are written back
/// unchanged.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    map: Node,
    pub operation: Operation,
}

impl Entry {
    pub fn new(writer: &Writer<'_>, operation: Operation, api_version: String, fields: FieldSet) -> Entry {
        let manager = if writer.manager.is_empty() { "unknown" } else { writer.manager };
        let mut map = Node::new();
        map.insert("manager".to_owned(), manager.into());
        map.insert("operation".to_owned(), operation.name().into());
        map.insert("apiVersion".to_owned(), api_version.into());
        map.insert("fieldsType".to_owned(), "FieldsV1".into());
        map.insert("fieldsV1".to_owned(), fields.into_fields_v1());
        map.insert("time".to_owned(), writer.now.into());
        if !writer.subresource.is_empty() {
            map.insert("subresource".to_owned(), writer.subresource.into());
        }
        Entry { map, operation }
    }

    fn text(&self, name: &str) -> &str {
        self.map.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    pub fn fields(&self) -> FieldSet {
        FieldSet::of(self.map.get("fieldsV1").and_then(Value::as_object).cloned().unwrap_or_default())
    }

    pub fn owns_nothing(&self) -> bool {
        self.map.get("fieldsV1").and_then(Value::as_object).is_none_or(Node::is_empty)
    }

    /// Changes the fields in place.
    pub fn change(&mut self, change: impl FnOnce(&mut FieldSet)) {
        if let Some(Value::Object(fields)) = self.map.get_mut("fieldsV1") {
            let mut set = FieldSet::of(std::mem::take(fields));
            change(&mut set);
            *fields = set.into_root();
        }
    }

    pub fn take_fields(&mut self) -> FieldSet {
        let mut taken = FieldSet::default();
        self.change(|fields| std::mem::swap(fields, &mut taken));
        taken
    }

    pub fn time(&self) -> Option<&str> {
        self.map.get("time").and_then(Value::as_str)
    }

    pub fn set_time(&mut self, time: Option<&str>) {
        match time {
            Some(time) => self.map.insert("time".to_owned(), time.into()),
            None => self.map.remove("time"),
        };
    }

    /// Whether both entries have the same manager. For applies, the version does not matter.
    pub fn is_same_manager(&self, other: &Entry) -> bool {
        let same = |name| self.text(name) == other.text(name);
        let same_version = self.operation == Operation::Apply || same("apiVersion");
        self.operation == other.operation && same("manager") && same("subresource") && same_version
    }

    /// The key by which upstream identifies and sorts managers.
    pub fn identity(&self) -> String {
        let (manager, operation) = (Value::from(self.text("manager")), self.operation.name());
        let mut parts = vec![format!("\"manager\":{manager}"), format!("\"operation\":\"{operation}\"")];
        if self.operation == Operation::Update {
            parts.push(format!("\"apiVersion\":{}", Value::from(self.api_version())));
        }
        if self.map.contains_key("subresource") {
            parts.push(format!("\"subresource\":{}", Value::from(self.text("subresource"))));
        }
        format!("{{{}}}", parts.join(","))
    }

    /// The manager as conflict messages name it.
    pub fn describe(&self) -> String {
        let mut text = format!("{:?}", self.text("manager"));
        if self.map.contains_key("subresource") {
            text = format!("{text} with subresource {:?}", self.text("subresource"));
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.api_version());
        }
        text
    }

    fn read(value: Value) -> Option<Entry> {
        let Value::Object(mut map) = value else { return None };
        let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if text("apiVersion").is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let fields = map.get_mut("fieldsV1").map(Value::take).unwrap_or_default();
        map.insert("fieldsV1".to_owned(), FieldSet::from_fields_v1(fields).ok()?.into_fields_v1());
        Some(Entry { map, operation })
    }
}

/// Removes the list from an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// The list of an object.
pub(super) fn of(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Reads all entries. `None` if one of them is malformed.
pub(super) fn read(list: Option<Value>) -> Option<Vec<Entry>> {
    match list {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => list.into_iter().map(Entry::read).collect(),
        Some(_) => None,
    }
}

/// Whether a list requests a reset of all ownership.
pub(super) fn is_reset(list: &Value) -> bool {
    *list == json!([]) || *list == json!([{}])
}

/// Writes the entries into an object, in upstream's order.
pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    // Times are in UTC and to the second, so they sort as text; entries without one come first.
    fn key(entry: &Entry) -> (Operation, Option<&str>, &str, &str, &str) {
        (entry.operation, entry.time(), entry.text("manager"), entry.api_version(), entry.text("subresource"))
    }
    entries.sort_by(|a, b| key(a).cmp(&key(b)));
    metadata.insert("managedFields".to_owned(), entries.into_iter().map(|entry| Value::Object(entry.map)).collect());
}

/// Merges the oldest updates if there are too many.
pub(super) fn merge_oldest_updates(entries: &mut Vec<Entry>) {
    let updaters = entries.iter().filter(|entry| entry.operation == Operation::Update).count();
    if updaters <= UPDATERS_MAX {
        return;
    }
    let mut oldest: Vec<(Option<String>, String)> = Vec::with_capacity(updaters);
    for entry in entries.iter().filter(|entry| entry.operation == Operation::Update) {
        oldest.push((entry.time().map(str::to_owned), entry.identity()));
    }
    oldest.sort();
    let mut left = updaters;
    let mut firsts: Vec<(String, String)> = Vec::new();
    for (time, identity) in oldest {
        if left <= UPDATERS_MAX {
            return;
        }
        let position =
            |entries: &[Entry], identity: &str| entries.iter().position(|entry| entry.identity() == identity);
        let Some(at) = position(entries, &identity) else { continue };
        let version = entries[at].api_version().to_owned();
        let Some((_, first)) = firsts.iter().find(|(each, _)| *each == version) else {
            firsts.push((version, identity));
            continue;
        };
        let old = entries.remove(at).take_fields();
        let is_bucket = |entry: &Entry| {
            entry.text("manager") == ANCIENT && entry.api_version() == version && entry.text("subresource").is_empty()
        };
        let bucket = match entries.iter().position(|entry| entry.operation == Operation::Update && is_bucket(entry)) {
            Some(bucket) => bucket,
            None => match position(entries, first) {
                Some(first) => first,
                None => continue,
            },
        };
        let bucket = &mut entries[bucket];
        bucket.map.insert("manager".to_owned(), ANCIENT.into());
        bucket.map.remove("subresource");
        bucket.change(|fields| fields.add(old));
        bucket.set_time(time.as_deref());
        left -= 1;
    }
}
