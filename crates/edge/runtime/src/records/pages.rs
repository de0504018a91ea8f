//! Pages of records: ConfigMaps with one entry for each record. Pure: what is stored, what a new
//! state of a page changes, and which writes a group of changes needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_engine::{Answer, RequestError};
use bindery_model::{Kind, Name, Object, ObjectKey, Record};
use bindery_rules_api::RecordEdit;
use serde_json::{Map, Value, json};

use crate::change_queue::WatchedChange;

/// The label of all pages; its value is the name of the set of pages.
pub(super) const LABEL: &str = "bindery.dev/provisioning-records";
/// The most bytes of data in a page. A ConfigMap may have 1 MiB.
pub(super) const PAGE_BYTES_MAX: usize = 512 << 10;
/// The most pages.
pub(super) const PAGES_MAX: usize = 16;

/// A change of one record, or a read of it.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Create(Name, Value),
    Write(Name, u64, RecordEdit),
    Read(Name),
}

impl Change {
    fn record(&self) -> &Name {
        match self {
            Change::Create(name, _) | Change::Write(name, _, _) | Change::Read(name) => name,
        }
    }
}

/// One conditional write of a page, and the changes that it makes: their positions in the group,
/// and the records afterwards.
#[derive(Debug, Default)]
pub(super) struct PageWrite {
    pub page: String,
    /// Whether the page does not exist yet.
    pub is_new: bool,
    pub body: Value,
    pub changes: Vec<(usize, Record)>,
}

/// What a group of changes needs: answers that need no write, and writes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub answers: Vec<(usize, Answer)>,
    pub writes: Vec<PageWrite>,
}

#[derive(Debug, Default)]
struct Page {
    uid: String,
    version: u64,
    data: BTreeMap<Name, String>,
}

impl Page {
    fn bytes(&self) -> usize {
        self.data.iter().map(|(name, text)| name.len() + text.len()).sum()
    }
}

/// The pages of one provisioner, as last seen.
#[derive(Debug)]
pub(super) struct Pages {
    /// The common part of their names.
    pub set: String,
    pages: BTreeMap<String, Page>,
    records: BTreeMap<Name, Arc<Record>>,
    /// The number of changes so far.
    changes: u64,
}

impl Pages {
    pub fn new(set: String) -> Pages {
        Pages { set, pages: BTreeMap::new(), records: BTreeMap::new(), changes: 0 }
    }

    /// The version of the last change. Versions of records count the changes that this process has
    /// seen. The resourceVersion of a page would not do: many records have it in common, and pages
    /// are seen in any order.
    pub fn version(&self) -> u64 {
        self.changes
    }

    fn next_version(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    pub fn record(&self, name: &Name) -> Option<&Arc<Record>> {
        self.records.get(name)
    }

    pub fn records(&self) -> &BTreeMap<Name, Arc<Record>> {
        &self.records
    }

    pub fn objects(&self) -> Vec<Object> {
        self.records.values().cloned().map(Object::Record).collect()
    }

    /// Stores a state of a page, unless a later one is known. Returns what has changed.
    pub fn seen(&mut self, page: &Value) -> Vec<WatchedChange> {
        let text = |field: &str| page["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, uid) = (text("name"), text("uid"));
        let version = text("resourceVersion").parse().unwrap_or(0);
        let known = self.pages.entry(name).or_default();
        if version <= known.version {
            return Vec::new();
        }
        let entries = page["data"].as_object().into_iter().flatten();
        let data: BTreeMap<Name, String> =
            entries.filter_map(|(name, text)| Some((Name::from(name.as_str()), text.as_str()?.to_owned()))).collect();
        let before = std::mem::replace(known, Page { uid, version, data: data.clone() }).data;
        let mut changed = Vec::new();
        for (name, text) in data.iter().filter(|(name, text)| before.get(*name) != Some(*text)) {
            let record = Arc::new(decode(name, text, self.next_version()));
            self.records.insert(name.clone(), record.clone());
            changed.push(WatchedChange::Changed(Object::Record(record)));
        }
        for name in before.keys().filter(|name| !data.contains_key(*name)) {
            self.records.remove(name);
            changed.push(WatchedChange::Deleted(ObjectKey::record(name.clone()), self.next_version()));
        }
        changed
    }

    /// A page was deleted at a version.
    pub fn deleted(&mut self, name: &str, version: u64) -> Vec<WatchedChange> {
        if self.pages.get(name).is_none_or(|page| page.version > version) {
            return Vec::new();
        }
        let page = self.pages.remove(name).unwrap_or_default();
        let removed = page.data.into_keys().map(|name| {
            self.records.remove(&name);
            WatchedChange::Deleted(ObjectKey::record(name), self.next_version())
        });
        removed.collect()
    }

    /// All pages were listed at a version.
    pub fn listed(&mut self, version: u64, pages: &[Value]) -> Vec<WatchedChange> {
        let is_listed = |name: &String| pages.iter().any(|page| page["metadata"]["name"] == **name);
        let missing: Vec<String> = self.pages.keys().filter(|name| !is_listed(name)).cloned().collect();
        let mut changed: Vec<WatchedChange> = missing.iter().flat_map(|name| self.deleted(name, version)).collect();
        changed.extend(pages.iter().flat_map(|page| self.seen(page)));
        changed
    }

    /// Groups changes into one write for each page that they affect. Each change is checked: a
    /// record is changed only in the version that the change is for.
    pub fn plan(&self, changes: &[(usize, Change)]) -> Plan {
        let mut plan = Plan::default();
        let mut touched: Vec<&Name> = Vec::new();
        let mut added: BTreeMap<String, usize> = BTreeMap::new();
        for (at, change) in changes {
            let name = change.record();
            let known = self.records.get(name);
            let outcome = match change {
                Change::Read(_) => Err(Answer::Read(known.cloned().map(Object::Record))),
                _ if touched.contains(&name) => Err(Answer::Rejected(RequestError::Conflict)),
                Change::Create(..) if known.is_some() => Err(Answer::Rejected(RequestError::AlreadyExists)),
                Change::Create(name, body) => {
                    let record = decode(name, &body.to_string(), 0);
                    let size = name.len() + record.content().to_string().len();
                    self.page_with_space(size, &mut added).map(|page| (page, record)).ok_or_else(|| full(size))
                }
                Change::Write(_, version, edit) => match known {
                    None => Err(Answer::Rejected(RequestError::NotFound)),
                    Some(known) if known.meta.version != *version => Err(Answer::Rejected(RequestError::Conflict)),
                    Some(known) => {
                        let mut record = known.as_ref().clone();
                        edit.apply(&mut record);
                        Ok((self.page_of(name), record))
                    }
                },
            };
            match outcome {
                Err(answer) => plan.answers.push((*at, answer)),
                Ok((page, record)) => {
                    touched.push(name);
                    match plan.writes.iter_mut().find(|write| write.page == page) {
                        Some(write) => write.changes.push((*at, record)),
                        None => {
                            plan.writes.push(PageWrite { page, changes: vec![(*at, record)], ..PageWrite::default() })
                        }
                    }
                }
            }
        }
        for write in &mut plan.writes {
            write.is_new = !self.pages.contains_key(&write.page);
            write.body = self.body(write);
        }
        plan
    }

    fn page_of(&self, record: &Name) -> String {
        let page = self.pages.iter().find(|(_, page)| page.data.contains_key(record));
        page.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    /// The first page with space for a new record; a page that does not exist yet if there is none.
    fn page_with_space(&self, size: usize, added: &mut BTreeMap<String, usize>) -> Option<String> {
        let names = (0..PAGES_MAX).map(|number| format!("{}-{number}", self.set));
        let has_space = |name: &String| {
            let used = self.pages.get(name).map_or(0, Page::bytes) + added.get(name).copied().unwrap_or(0);
            used + size <= PAGE_BYTES_MAX
        };
        let page = names.into_iter().find(has_space)?;
        *added.entry(page.clone()).or_default() += size;
        Some(page)
    }

    /// The ConfigMap to create, or the patch with its preconditions.
    fn body(&self, write: &PageWrite) -> Value {
        let entry = |record: &Record| match record.deleting {
            true => Value::Null,
            false => record.content().to_string().into(),
        };
        let data: Map<String, Value> =
            write.changes.iter().map(|(_, record)| (record.meta.name.to_string(), entry(record))).collect();
        let metadata = match self.pages.get(&write.page) {
            None => json!({"name": write.page, "labels": {LABEL: label_value(&self.set)}}),
            Some(page) => json!({"uid": page.uid, "resourceVersion": page.version.to_string()}),
        };
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    }
}

/// Labels are limited to 63 characters.
pub(super) fn label_value(set: &str) -> String {
    match set.len() {
        0..=63 => set.to_owned(),
        _ => format!("{}.{:08x}", &set[..54], bindery_model::hash::fnv1(set)),
    }
}

fn full(size: usize) -> Answer {
    let message = format!(
        "{PAGES_MAX} ConfigMaps of {PAGE_BYTES_MAX} bytes have no space for another provisioning record of {size} bytes"
    );
    Answer::Rejected(RequestError::Error(0, message))
}

/// Decodes a record. If it is not readable, it has a field error.
fn decode(name: &Name, text: &str, version: u64) -> Record {
    let metadata = json!({"name": name.as_str(), "uid": name.as_str(), "resourceVersion": version.to_string()});
    let mut object: Value = serde_json::from_str(text).unwrap_or_default();
    if !object.is_object() {
        object = json!({"attempt": text});
    }
    object["metadata"] = metadata;
    Record::from_json(object.to_string().as_bytes())
        .unwrap_or_else(|error| Record { field_error: Some(Box::new(error)), ..Record::default() })
}

/// The kind that pages store.
pub(super) const KIND: Kind = Kind::Record;

#[cfg(test)]
mod tests;
