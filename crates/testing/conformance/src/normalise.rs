//! Removes from a response what must differ between two servers, and nothing else.
//!
//! UIDs and revisions are numbered in the order in which a run receives them, so that equal ones
//! remain equal. Times set by a server become `<time>`; shapes send only times of 2020, which are
//! kept.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What a run on one server has received so far.
#[derive(Debug, Default)]
pub struct Normaliser {
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<String, usize>,
    generated: BTreeMap<String, usize>,
    prefixes: Vec<String>,
}

/// Generated names end with this many of these characters.
const SUFFIX_LENGTH: usize = 5;
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Longer prefixes are truncated before a name is generated.
const PREFIX_MAX: usize = 58;

/// The groups that are compared in discovery; kube-apiserver has more.
const GROUPS: [&str; 4] = ["", "storage.k8s.io", "coordination.k8s.io", "events.k8s.io"];

/// The resources that are compared in discovery.
const RESOURCES: [&str; 16] = [
    "namespaces",
    "nodes",
    "pods",
    "persistentvolumes",
    "persistentvolumeclaims",
    "events",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "storageclasses",
    "volumeattributesclasses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "volumeattachments",
    "leases",
];

/// The subresources that are compared in discovery.
const SUBRESOURCES: [&str; 3] = ["status", "binding", "finalize"];

impl Normaliser {
    /// Announces a request for a generated name with this prefix.
    pub fn expect_generated(&mut self, prefix: &str) {
        let prefix: String = prefix.chars().take(PREFIX_MAX).collect();
        if !prefix.is_empty() && !self.prefixes.contains(&prefix) {
            self.prefixes.push(prefix);
        }
    }

    /// Normalises a response.
    pub fn normalise(&mut self, mut answer: Value) -> Value {
        if let Some(body) = answer.get_mut("body") {
            retain_served_kinds(body);
        }
        self.value(&mut answer, "");
        answer
    }

    fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) => *text = self.text(text, key),
            Value::Array(list) => list.iter_mut().for_each(|item| self.value(item, key)),
            Value::Object(map) => self.object(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        let is_list = map.contains_key("items") || map.contains_key("columnDefinitions") || map.contains_key("rows");
        let is_bookmark = map.get("type").is_some_and(|kind| kind == "BOOKMARK");
        if is_bookmark && let Some(metadata) = map.get_mut("object").and_then(|object| object.get_mut("metadata")) {
            hide(metadata, "resourceVersion", "<revision>");
        }
        if is_list {
            tidy_table(map);
        }
        if let Some(metadata) = map.get_mut("metadata") {
            // The revision of a list depends on other requests to the server.
            if is_list {
                hide(metadata, "resourceVersion", "<revision>");
            }
            hide(metadata, "continue", "<continue>");
            self.normalise_metadata(metadata);
        }
        if let Some(addresses) = map.get_mut("serverAddressByClientCIDRs") {
            *addresses = Value::String("<addresses>".to_owned());
        }
        if let Some(Value::Array(causes)) = map.get_mut("causes") {
            sort_conflicts(causes);
        }
        map.remove("storageVersionHash");
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort();
        for key in keys {
            let Some(mut value) = map.remove(&key) else { continue };
            self.value(&mut value, &key);
            // managedFields identifies list entries by UID, in keys.
            map.insert(if is_uid_inside(&key) { self.replace_uids(&key) } else { key }, value);
        }
    }

    fn normalise_metadata(&mut self, metadata: &mut Value) {
        let revision = metadata.get("resourceVersion").and_then(Value::as_str).map(str::to_owned);
        if let Some(revision) = revision.filter(|text| is_number(text)) {
            let next = self.revisions.len() + 1;
            let number = *self.revisions.entry(revision).or_insert(next);
            hide(metadata, "resourceVersion", &format!("<revision {number}>"));
        }
        if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            // Servers sort the entries by time, and a second may end between two writes on one
            // server only.
            let of = |entry: &Value, field: &str| entry.get(field).map(Value::to_string).unwrap_or_default();
            entries.sort_by_key(|entry| {
                ["operation", "manager", "subresource", "apiVersion"].map(|field| of(entry, field))
            });
        }
    }

    fn text(&mut self, text: &str, key: &str) -> String {
        let mut text = self.replace_quoted_object(text);
        text = self.replace_uids(&text);
        for prefix in 0..self.prefixes.len() {
            text = self.replace_generated(&text, prefix);
        }
        text = replace_times(&text);
        if key == "message" || key == "warning" {
            text = without_revisions(&text);
        }
        text
    }

    /// The response to a rejected patch contains the patched object as quoted JSON, which is
    /// normalised, too.
    fn replace_quoted_object(&mut self, text: &str) -> String {
        const BEFORE: &str = "Invalid value: \"{";
        let Some(at) = text.find(BEFORE).map(|at| at + BEFORE.len() - 2) else { return text.to_owned() };
        let mut quoted = serde_json::Deserializer::from_str(&text[at..]).into_iter::<String>();
        let object = quoted.next().and_then(|quoted| serde_json::from_str::<Value>(&quoted.ok()?).ok());
        let end = at + quoted.byte_offset();
        match object {
            Some(mut object) => {
                self.value(&mut object, "");
                sort_keys(&mut object);
                format!("{}<object {object}>{}", &text[..at], &text[end..])
            }
            None => text.to_owned(),
        }
    }

    /// Generated names are numbered.
    fn replace_generated(&mut self, text: &str, prefix: usize) -> String {
        let prefix = self.prefixes[prefix].clone();
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(&prefix) {
            let after = &rest[at + prefix.len()..];
            out.push_str(&rest[..at]);
            match after.get(..SUFFIX_LENGTH).filter(|suffix| suffix.bytes().all(|byte| SUFFIX.contains(&byte))) {
                Some(suffix) => {
                    let next = self.generated.len() + 1;
                    let number = *self.generated.entry(format!("{prefix}{suffix}")).or_insert(next);
                    out.push_str(&format!("<generated {number}>"));
                    rest = &after[SUFFIX_LENGTH..];
                }
                None => {
                    out.push_str(&prefix);
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn replace_uids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = (0..rest.len()).find(|&at| rest.is_char_boundary(at) && is_uid(&rest[at..])) {
            let next = self.uids.len() + 1;
            let number = *self.uids.entry(rest[at..at + UID_LENGTH].to_owned()).or_insert(next);
            out.push_str(&rest[..at]);
            out.push_str(&format!("<uid {number}>"));
            rest = &rest[at + UID_LENGTH..];
        }
        out + rest
    }
}

const UID_LENGTH: usize = 36;

fn is_uid_inside(text: &str) -> bool {
    text.len() >= UID_LENGTH && (0..text.len()).any(|at| text.is_char_boundary(at) && is_uid(&text[at..]))
}

fn is_uid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= UID_LENGTH
        && bytes[..UID_LENGTH].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            // Version 4: the UIDs that shapes send are all zeros, and are kept.
            14 => *byte == b'4',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The order of keys is irrelevant.
fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.iter_mut().for_each(|(_, value)| sort_keys(value));
            map.extend(fields);
        }
        Value::Array(list) => list.iter_mut().for_each(sort_keys),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn hide(object: &mut Value, field: &str, by: &str) {
    if let Some(value) = object.get_mut(field)
        && value.as_str().is_some_and(|text| !text.is_empty())
    {
        *value = Value::String(by.to_owned());
    }
}

/// Replaces RFC 3339 times, except those of the year that shapes send.
fn replace_times(text: &str) -> String {
    const SECONDS: usize = "2006-01-02T15:04:05".len();
    let is_time = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() > SECONDS
            && bytes[..SECONDS].iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                10 => *byte == b'T',
                13 | 16 => *byte == b':',
                _ => byte.is_ascii_digit(),
            })
            && !text.starts_with("2020-")
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = (0..rest.len()).find(|&at| rest.is_char_boundary(at) && is_time(&rest[at..])) {
        out.push_str(&rest[..at]);
        rest = &rest[at + SECONDS..];
        let fraction = rest
            .strip_prefix('.')
            .map_or(0, |digits| 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
        out.push_str(if fraction == 0 { "<time" } else { "<microtime" });
        rest = &rest[fraction..];
        out.push_str(if rest.starts_with('Z') { ">" } else { " not UTC>" });
        rest = rest.strip_prefix('Z').unwrap_or(rest);
    }
    out + rest
}

/// Replaces the server's revisions in messages about revisions.
fn without_revisions(text: &str) -> String {
    let speaks_of_revisions = ["resource version", "ResourceVersion in "];
    if !speaks_of_revisions.iter().any(|words| text.contains(words)) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut digits = false;
    for c in text.chars() {
        if c.is_ascii_digit() && (digits || !out.ends_with(|before: char| before.is_alphanumeric())) {
            if !digits {
                out.push_str("<number>");
            }
            digits = true;
        } else {
            digits = false;
            out.push(c);
        }
    }
    out
}

/// Conflicts with several managers have no defined order.
fn sort_conflicts(causes: &mut [Value]) {
    if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        causes.sort_by_key(|cause| (cause["message"].to_string(), cause["field"].to_string()));
    }
}

/// Ages depend on the time of the request, and each server has its own column descriptions.
fn tidy_table(table: &mut Map<String, Value>) {
    let columns: Vec<String> = table
        .get("columnDefinitions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|column| column.get("name").and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect();
    let is_age = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(|c: char| "smhdy".contains(c))
            && text.len() < 8
    };
    for column in table.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        hide(column, "description", "<description>");
    }
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for (at, cell) in row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            let is_old =
                columns.get(at).is_none_or(|column| ["Age", "Last Seen", "First Seen"].contains(&column.as_str()));
            if is_old && cell.as_str().is_some_and(is_age) {
                *cell = Value::String("<age>".to_owned());
            }
        }
    }
}

/// Drops bookmarks, whose number depends on timing, except for the one after the initial events.
pub fn drop_bookmarks(body: &mut Value) {
    let is_plain =
        |event: &Value| event["type"] == "BOOKMARK" && event["object"]["metadata"].get("annotations").is_none();
    if let Some(events) = body.get_mut("events").and_then(Value::as_array_mut) {
        events.retain(|event| !is_plain(event));
    }
}

/// Reduces discovery documents to what both servers must serve.
fn retain_served_kinds(body: &mut Value) {
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let name_of = |item: &Value, field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "APIResourceList" => retain(body, "resources", |item| {
            let name = name_of(item, "name");
            let (resource, subresource) = name.split_once('/').unwrap_or((&name, ""));
            RESOURCES.contains(&resource) && (subresource.is_empty() || SUBRESOURCES.contains(&subresource))
        }),
        "APIGroupList" => retain(body, "groups", |item| GROUPS.contains(&name_of(item, "name").as_str())),
        "APIGroupDiscoveryList" => {
            retain(body, "items", |item| {
                GROUPS.contains(&item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default())
            });
            for group in body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                retain(group, "versions", |version| name_of(version, "version") == "v1");
                for version in group.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
                    retain(version, "resources", |item| RESOURCES.contains(&name_of(item, "resource").as_str()));
                    for resource in version.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
                        retain(resource, "subresources", |item| {
                            SUBRESOURCES.contains(&name_of(item, "subresource").as_str())
                        });
                        // An empty list equals a missing one here.
                        let is_empty = resource["subresources"].as_array().is_some_and(Vec::is_empty);
                        if let Some(resource) = resource.as_object_mut().filter(|_| is_empty) {
                            resource.remove("subresources");
                        }
                    }
                }
            }
        }
        _ => {}
    }
    // Only kube-apiserver has other versions of a group.
    if kind == "APIGroup" {
        retain(body, "versions", |version| name_of(version, "version") == "v1");
    }
    for group in body.get_mut("groups").and_then(Value::as_array_mut).into_iter().flatten() {
        retain(group, "versions", |version| name_of(version, "version") == "v1");
    }
}

fn retain(object: &mut Value, field: &str, is_served: impl Fn(&Value) -> bool) {
    if let Some(list) = object.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(is_served);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "0b2d3f60-97a1-4c4e-8b4f-0123456789ab";

    #[test]
    fn differing_values_are_replaced_and_equal_ones_remain_equal() {
        let object = |revision: &str| {
            json!({"status": 200, "body": {"metadata": {
                "name": "a", "uid": UID, "resourceVersion": revision, "creationTimestamp": "2026-11-15T15:00:00Z"}}})
        };
        let mut normaliser = Normaliser::default();
        let first = normaliser.normalise(object("7"));
        assert_eq!(
            first["body"]["metadata"],
            json!({"name": "a", "uid": "<uid 1>", "resourceVersion": "<revision 1>", "creationTimestamp": "<time>"})
        );
        assert_eq!(normaliser.normalise(object("7")), first);
        assert_ne!(normaliser.normalise(object("8")), first);
    }

    #[test]
    fn values_sent_by_shapes_are_kept() {
        let mut normaliser = Normaliser::default();
        let mut text = |text: &str| normaliser.text(text, "message");
        assert_eq!(
            text("at 2020-01-02T03:04:05Z, 2026-01-02T03:04:05.123456Z"),
            "at 2020-01-02T03:04:05Z, <microtime>"
        );
        assert_eq!(text("too old resource version: 1 (45)"), "too old resource version: <number> (<number>)");
        assert_eq!(text(&format!("uid ({UID}) is not 45")), "uid (<uid 1>) is not 45");
    }

    #[test]
    fn ages_in_tables_are_replaced() {
        let table = json!({"body": {"columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
            "rows": [{"cells": ["5s", "5s"]}, {"cells": ["x", "<unknown>"]}]}});
        let normal = Normaliser::default().normalise(table);
        assert_eq!(normal["body"]["rows"], json!([{"cells": ["5s", "<age>"]}, {"cells": ["x", "<unknown>"]}]));
    }
}
