//! The objects of a cluster at one moment, read from its API server or from files that kubectl
//! wrote.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use bindery_cache::Cache;
use bindery_matching::INDEX_POLICY;
use bindery_model::{Kind, Object};
use bindery_runtime::{Api, list, list_records};
use kube::Client;
use serde_json::Value;

/// The deadline for one page of a list.
const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// More than any dump of a cluster contains, and few enough that YAML aliases cannot exhaust
/// memory.
const YAML_NODES_MAX: usize = 100_000_000;

/// The objects, and warnings about objects that are missing or were skipped.
pub struct Snapshot {
    /// The objects.
    pub known: Cache,
    /// Events, as JSON.
    pub events: Vec<Value>,
    /// Kinds that are missing, and objects that could not be read.
    pub warnings: Vec<String>,
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot { known: Cache::new(INDEX_POLICY), events: Vec::new(), warnings: Vec::new() }
    }
}

/// Lists every kind that rules read.
pub async fn of_cluster(client: Client) -> Result<Snapshot, String> {
    let api = Api::new(client, CALL_DEADLINE, None);
    let mut snapshot = Snapshot::default();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_served()) {
        match list(&api, kind).await {
            Ok((version, objects)) => {
                snapshot.known.listed(kind, version.parse().unwrap_or(0), objects);
            }
            // Users may lack permission to list these, and most explanations do not need them.
            Err(error) if !matches!(kind, Kind::Claim | Kind::Volume | Kind::Class) => {
                let warning = format!("cannot list {}s, continuing as if there were none: {error}", kind.as_str());
                snapshot.warnings.push(warning);
            }
            Err(error) => return Err(format!("cannot list {}s: {error}", kind.as_str())),
        }
    }
    match list_records(&api).await {
        Ok((version, records)) => {
            snapshot.known.listed(Kind::Record, version, records);
        }
        Err(error) => {
            let warning = format!("cannot list ConfigMaps, continuing without provisioning records: {error}");
            snapshot.warnings.push(warning);
        }
    }
    Ok(snapshot)
}

/// The events about an object; none if they cannot be read.
pub async fn events_about(client: Client, namespace: &str, name: &str) -> Vec<Value> {
    let api = Api::new(client, CALL_DEADLINE, None);
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name%3D{name}");
    let mut list = api.get(&path).await.unwrap_or_default();
    list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// Reads files, `-` for standard input. Kinds that no rule reads are skipped.
pub fn of_files(files: &[PathBuf]) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::default();
    let mut objects = Vec::new();
    for file in files {
        let in_file = |error: String| format!("cannot parse {}: {error}", file.display());
        for document in documents(&text(file)?).map_err(in_file)? {
            snapshot.events.extend(events(&document));
            add(document, "", &mut objects, &mut snapshot.warnings);
        }
    }
    for kind in Kind::ALL {
        let (of_kind, others): (Vec<Object>, Vec<Object>) =
            objects.into_iter().partition(|object| object.kind() == kind);
        objects = others;
        if of_kind.is_empty() && matches!(kind, Kind::Claim | Kind::Volume | Kind::Class) {
            snapshot.warnings.push(format!("the files contain no {}", kind.as_str()));
        }
        let version = of_kind.iter().map(|object| object.meta().version).max().unwrap_or(0);
        snapshot.known.listed(kind, version, of_kind);
    }
    Ok(snapshot)
}

fn text(file: &PathBuf) -> Result<String, String> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(|_| text),
        Some(_) | None => std::fs::read_to_string(file),
    };
    read.map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// The documents of a file: YAML, or concatenated JSON.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return stream.collect::<Result<_, _>>().map_err(|error| error.to_string());
    }
    let options = serde_saphyr::options! {
        // An object may be named `n` or `on`.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_nodes: YAML_NODES_MAX,
            max_events: YAML_NODES_MAX,
            max_documents: YAML_NODES_MAX,
            max_total_scalar_bytes: usize::MAX,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())
}

/// The events in a document, which is an event or a list.
fn events(document: &Value) -> Vec<Value> {
    let is_event = |object: &&Value| object["kind"] == "Event";
    let items = document["items"].as_array().into_iter().flatten();
    items.chain([document]).filter(is_event).cloned().collect()
}

/// Adds an object, or all objects of a list. `list_kind` is the kind of a typed list's items, which
/// may not name it themselves.
fn add(document: Value, list_kind: &str, objects: &mut Vec<Object>, warnings: &mut Vec<String>) {
    let kind = document["kind"].as_str().unwrap_or(list_kind).to_owned();
    if let Some(of_items) = kind.strip_suffix("List") {
        let mut document = document;
        if let Value::Array(items) = document["items"].take() {
            items.into_iter().for_each(|item| add(item, of_items, objects, warnings));
        }
        return;
    }
    let Some(kind) = Kind::parse(&kind) else { return };
    match Object::from_json(kind, document.to_string().as_bytes()) {
        Ok(object) => objects.push(object),
        Err(error) => warnings.push(format!("skipped an invalid {}: {error}", kind.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let (mut objects, mut warnings) = (Vec::new(), Vec::new());
        for document in documents(text).expect("valid text") {
            add(document, "", &mut objects, &mut warnings);
        }
        objects.iter().map(|object| object.key().to_string()).chain(warnings).collect()
    }

    #[test]
    fn lists_and_documents_are_read_as_yaml_and_json() {
        let list = "kind: List\nitems:\n- {kind: Node, metadata: {name: n, uid: u}}\n- {kind: Secret}\n";
        assert_eq!(keys(list), ["Node n"]);
        let two = "kind: Node\nmetadata: {name: a, uid: u}\n---\nkind: Node\nmetadata: {name: b, uid: u}\n---\n";
        assert_eq!(keys(two), ["Node a", "Node b"]);
        let typed =
            r#"{"kind": "PersistentVolumeList", "items": [{"metadata": {"name": "v", "uid": "u"}}]} {"kind": "Event"}"#;
        assert_eq!(keys(typed), ["PersistentVolume v"]);
        assert_eq!(keys("kind: Node\n"), ["skipped an invalid Node: metadata.name: it is missing"]);
        assert!(documents("a: [").is_err() && documents("{").is_err());
    }

    #[test]
    fn large_dump_is_read() {
        let item = "- {kind: Node, metadata: {name: n, uid: u, labels: {a: b, c: d, e: f}}}\n";
        let text = format!("kind: List\nitems:\n{}", item.repeat(30_000));
        assert_eq!(keys(&text).len(), 30_000);
    }
}
