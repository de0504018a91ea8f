//! The entries of `metadata.managedFields`.

use serde_json::{Map, Value, json};

use crate::FieldSet;

/// More managers that update are not kept apart.
const UPDATERS_MAX: usize = 10;

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

/// What a manager owns.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    pub time: Option<String>,
    pub fields: FieldSet,
}

impl Entry {
    /// Whether two entries are of one manager. Those that apply are one across versions.
    pub fn is_of(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// What upstream knows a manager by, and orders them by.
    pub fn identity(&self) -> String {
        let mut parts = vec![
            format!("\"manager\":{}", Value::from(self.manager.as_str())),
            format!("\"operation\":\"{}\"", self.operation.name()),
        ];
        if self.operation == Operation::Update {
            parts.push(format!("\"apiVersion\":{}", Value::from(self.api_version.as_str())));
        }
        if !self.subresource.is_empty() {
            parts.push(format!("\"subresource\":{}", Value::from(self.subresource.as_str())));
        }
        format!("{{{}}}", parts.join(","))
    }

    /// The manager as it is named in conflicts.
    pub fn in_words(&self) -> String {
        let mut words = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            words = format!("{words} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            words = format!("{words} using {}", self.api_version);
        }
        words
    }

    fn read(value: Value) -> Option<Entry> {
        let Value::Object(mut map) = value else { return None };
        let mut text = |name: &str| match map.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let (manager, api_version, subresource) = (text("manager"), text("apiVersion"), text("subresource"));
        if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let time = Some(text("time")).filter(|time| !time.is_empty());
        let fields = FieldSet::from_fields_v1(map.remove("fieldsV1").unwrap_or_default()).ok()?;
        Some(Entry { manager, operation, api_version, subresource, time, fields })
    }

    fn write(self) -> Value {
        let mut map = Map::new();
        map.insert("manager".to_owned(), self.manager.into());
        map.insert("operation".to_owned(), self.operation.name().into());
        map.insert("apiVersion".to_owned(), self.api_version.into());
        map.insert("fieldsType".to_owned(), "FieldsV1".into());
        map.insert("fieldsV1".to_owned(), self.fields.into_fields_v1());
        if let Some(time) = self.time {
            map.insert("time".to_owned(), time.into());
        }
        if !self.subresource.is_empty() {
            map.insert("subresource".to_owned(), self.subresource.into());
        }
        Value::Object(map)
    }
}

/// Takes the list out of an object. None if there is none.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// The list of an object.
pub(super) fn of(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Reads all entries. None if one of them makes no sense.
pub(super) fn read(list: Option<Value>) -> Option<Vec<Entry>> {
    match list {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => list.into_iter().map(Entry::read).collect(),
        Some(_) => None,
    }
}

/// Whether a list asks for everything to be forgotten.
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
    // Times are all in UTC and to the second, so their text orders them; those without one come first.
    entries.sort_by(|a, b| {
        let key = |entry: &Entry| (entry.operation, entry.time.clone());
        key(a)
            .cmp(&key(b))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| a.api_version.cmp(&b.api_version))
            .then_with(|| a.subresource.cmp(&b.subresource))
    });
    metadata.insert("managedFields".to_owned(), entries.into_iter().map(Entry::write).collect());
}

/// Throws the oldest updaters together where there are too many.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    let updaters = entries.iter().filter(|entry| entry.operation == Operation::Update).count();
    if updaters <= UPDATERS_MAX {
        return;
    }
    let mut oldest: Vec<(Option<String>, String)> = Vec::with_capacity(updaters);
    for entry in entries.iter().filter(|entry| entry.operation == Operation::Update) {
        oldest.push((entry.time.clone(), entry.identity()));
    }
    oldest.sort();
    let mut left = updaters;
    let mut firsts: Vec<(String, String)> = Vec::new();
    for (time, identity) in oldest {
        if left <= UPDATERS_MAX {
            return;
        }
        let place = |entries: &[Entry], identity: &str| entries.iter().position(|entry| entry.identity() == identity);
        let Some(at) = place(entries, &identity) else { continue };
        let version = entries[at].api_version.clone();
        let Some((_, first)) = firsts.iter().find(|(each, _)| *each == version) else {
            firsts.push((version, identity));
            continue;
        };
        let old = entries.remove(at);
        let is_bucket = |entry: &Entry| {
            entry.manager == "ancient-changes" && entry.api_version == version && entry.subresource.is_empty()
        };
        let bucket = match entries.iter().position(|entry| entry.operation == Operation::Update && is_bucket(entry)) {
            Some(bucket) => bucket,
            None => match place(entries, first) {
                Some(first) => first,
                None => continue,
            },
        };
        let bucket = &mut entries[bucket];
        bucket.manager = "ancient-changes".to_owned();
        bucket.subresource.clear();
        bucket.fields.add(old.fields);
        bucket.time = time;
        left -= 1;
    }
}
