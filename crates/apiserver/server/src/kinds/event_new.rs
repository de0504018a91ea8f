//! Event, as the group `events.k8s.io` shows it: the same objects under other names.

use super::event::{self, COLUMNS, EVENT_MANNERS, Event};
use super::{ALL_VERBS, Kind, Manners, Rules, Scene, Selectable, Sight, View};
use crate::invalid::FieldErrors;
use crate::value::{set, set_default, take, text};
use serde_json::{Value, json};

pub(crate) static KIND: Kind = Kind {
    group: "events.k8s.io",
    version: "v1",
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: COLUMNS,
    cells,
    space: "events",
    rules: &NewEvent,
    manners: Manners { view: Some(View { show, store }), ..EVENT_MANNERS },
};

/// What a field is called here, and what in the core group.
const NAMES: [(&str, &str); 6] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(value) = take(object, &[from]) {
        set(object, &[to], value);
    }
}

fn show(object: &mut Value) {
    for (here, core) in NAMES {
        rename(object, core, here);
    }
    rename(object, "reportingComponent", "reportingController");
    for field in ["reportingController", "reportingInstance"] {
        if text(object, &[field]).is_empty() {
            take(object, &[field]);
        }
    }
    set(object, &["apiVersion"], "events.k8s.io/v1");
}

fn store(object: &mut Value) {
    for (here, core) in NAMES {
        rename(object, here, core);
    }
    rename(object, "reportingController", "reportingComponent");
    set_default(object, &["involvedObject"], json!({}));
    set_default(object, &["source"], json!({}));
    for field in ["reportingComponent", "reportingInstance"] {
        set_default(object, &[field], "");
    }
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        set_default(object, &[field], Value::Null);
    }
    set(object, &["apiVersion"], "v1");
}

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let mut stored = object.clone();
    store(&mut stored);
    event::cells(&stored, sight)
}

#[derive(Debug)]
struct NewEvent;

impl Rules for NewEvent {
    fn prepare_change(&self, _new: &mut Value, _old: &Value, _scene: &Scene<'_>) {}

    fn check(&self, object: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        Event.check(object, scene, flaws);
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        Event.check_change(new, old, scene, flaws);
    }

    fn selectable(&self) -> &'static [Selectable] {
        &[
            ("regarding.kind", |event| text(event, &["involvedObject", "kind"]).to_owned()),
            ("regarding.namespace", |event| text(event, &["involvedObject", "namespace"]).to_owned()),
            ("regarding.name", |event| text(event, &["involvedObject", "name"]).to_owned()),
            ("regarding.uid", |event| text(event, &["involvedObject", "uid"]).to_owned()),
            ("regarding.apiVersion", |event| text(event, &["involvedObject", "apiVersion"]).to_owned()),
            ("regarding.resourceVersion", |event| text(event, &["involvedObject", "resourceVersion"]).to_owned()),
            ("regarding.fieldPath", |event| text(event, &["involvedObject", "fieldPath"]).to_owned()),
            ("reason", |event| text(event, &["reason"]).to_owned()),
            ("reportingController", |event| text(event, &["reportingComponent"]).to_owned()),
            ("type", |event| text(event, &["type"]).to_owned()),
        ]
    }
}
