//! Event in the group `events.k8s.io`: the same objects with other field names.

use super::event::{self, COLUMNS, EVENT_BEHAVIOR, Event};
use super::{Behavior, DEFAULT_KIND, Kind, PrintContext, Selectable, Strategy, View, WriteContext};
use crate::field_errors::FieldErrors;
use crate::value::{set, set_if_empty, take, text};
use serde_json::{Value, json};

pub(crate) static KIND: Kind = Kind {
    group: "events.k8s.io",
    kind: "Event",
    plural: "events",
    short_names: &["ev"],
    namespaced: true,
    columns: COLUMNS,
    cells,
    strategy: &EventsGroupEvent,
    behavior: Behavior { view: Some(View { show, store }), ..EVENT_BEHAVIOR },
    ..DEFAULT_KIND
};

/// The names of fields in this group and in the core group.
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
    set_if_empty(object, &["involvedObject"], json!({}));
    set_if_empty(object, &["source"], json!({}));
    for field in ["reportingComponent", "reportingInstance"] {
        set_if_empty(object, &[field], "");
    }
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        set_if_empty(object, &[field], Value::Null);
    }
    set(object, &["apiVersion"], "v1");
}

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let mut stored = object.clone();
    store(&mut stored);
    event::cells(&stored, context)
}

#[derive(Debug)]
struct EventsGroupEvent;

impl Strategy for EventsGroupEvent {
    fn prepare_for_update(&self, _new: &mut Value, _old: &Value, _context: &WriteContext<'_>) {}

    fn validate(&self, object: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        Event.validate(object, context, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        Event.validate_update(new, old, context, errors);
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
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
