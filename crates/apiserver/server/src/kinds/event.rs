//! Event, as the core group shows it, which is how it is stored.

use super::{ALL_VERBS, Column, Kind, MANNERS, Manners, Rules, Scene, Selectable, Sight, column, print, wide};
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::value::{at, text};
use serde_json::Value;

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", "When it was last seen."),
    column("Type", "Whether something is wrong."),
    column("Reason", "What happened, in a word."),
    column("Object", "What it happened to."),
    wide("Subobject", "Which part of it."),
    wide("Source", "Who saw it."),
    column("Message", "What happened, in words."),
    wide("First Seen", "When it was first seen."),
    wide("Count", "How often it was seen."),
    Column { name: "Name", kind: "string", format: "name", description: "The event's name.", priority: 1 },
];

pub(super) const EVENT_MANNERS: Manners = Manners { create_on_update: true, collected: false, ..MANNERS };

pub(crate) static KIND: Kind = Kind {
    group: "",
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
    rules: &Event,
    manners: EVENT_MANNERS,
};

/// The cells of an event in its stored form.
pub(super) fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let seen = |first: &str, fallback: &str| {
        let time = [first, fallback].into_iter().find(|time| !time.is_empty()).unwrap_or_default();
        print::since(time, sight.now)
    };
    let event_time = text(object, &["eventTime"]);
    let first = seen(text(object, &["firstTimestamp"]), event_time);
    let series = at(object, &["series"]);
    let last = match series {
        Some(series) => seen(text(series, &["lastObservedTime"]), ""),
        None => match text(object, &["lastTimestamp"]) {
            "" => first.clone(),
            time => seen(time, ""),
        },
    };
    let count = match series {
        Some(series) => at(series, &["count"]).and_then(Value::as_i64).unwrap_or(0),
        None => at(object, &["count"]).and_then(Value::as_i64).unwrap_or(0),
    };
    let component = match text(object, &["source", "component"]) {
        "" => text(object, &["reportingComponent"]),
        component => component,
    };
    let host = match text(object, &["source", "host"]) {
        "" => text(object, &["reportingInstance"]),
        host => host,
    };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let involved = |field| text(object, &["involvedObject", field]);
    let kind = involved("kind").to_lowercase();
    let about = if involved("name").is_empty() { kind } else { format!("{kind}/{}", involved("name")) };
    vec![
        last.into(),
        text(object, &["type"]).into(),
        text(object, &["reason"]).into(),
        about.into(),
        involved("fieldPath").into(),
        source.into(),
        text(object, &["message"]).trim().into(),
        first.into(),
        if count == 0 { 1 } else { count }.into(),
        print::name(object),
    ]
}

/// The rules of both kinds of events; those of the newer group are stricter.
#[derive(Debug)]
pub(super) struct Event;

impl Rules for Event {
    fn prepare_change(&self, _new: &mut Value, _old: &Value, _scene: &Scene<'_>) {}

    fn check(&self, object: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_always(object, is_new(scene), flaws);
        if !is_new(scene) {
            return;
        }
        check_series(object, flaws);
        if at(object, &["eventTime"]).is_none_or(Value::is_null) {
            flaws.required("eventTime", "");
        }
        let kind = text(object, &["type"]);
        if !matches!(kind, "Normal" | "Warning") {
            flaws.invalid("type", "", &format!("has invalid value: {kind}"));
        }
        let set = |path: &[&str]| {
            at(object, path).is_some_and(|value| !value.is_null() && value.as_i64() != Some(0) && value != "")
        };
        for (field, is_set) in [
            ("firstTimestamp", set(&["firstTimestamp"])),
            ("lastTimestamp", set(&["lastTimestamp"])),
            ("count", set(&["count"])),
            ("source", set(&["source", "component"]) || set(&["source", "host"])),
        ] {
            if is_set {
                flaws.invalid(field, "", "needs to be unset");
            }
        }
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_always(new, is_new(scene), flaws);
        if !is_new(scene) {
            return;
        }
        if at(new, &["series"]) != at(old, &["series"]) {
            check_series(new, flaws);
        }
        for (field, shown) in [
            ("involvedObject", "involvedObject"),
            ("reason", "reason"),
            ("message", "message"),
            ("source", "source"),
            ("firstTimestamp", "firstTimestamp"),
            ("lastTimestamp", "lastTimestamp"),
            ("count", "count"),
            // Upstream looks at it twice.
            ("reason", "reason"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingComponent", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            let now = at(new, &[field]);
            if now == at(old, &[field]) {
                continue;
            }
            match (field, now) {
                ("involvedObject" | "related", Some(now)) => {
                    flaws.invalid_text(shown, &reference(now), "field is immutable");
                }
                (_, now) => flaws.invalid(shown, now.cloned().unwrap_or_default(), "field is immutable"),
            }
        }
    }

    fn care(&self) -> Care {
        Care::Nothing
    }

    fn check_name(&self, name: &str, _prefix: bool) -> Vec<String> {
        let bad = ['/', '%'].into_iter().filter(|letter| name.contains(*letter));
        bad.map(|letter| format!("may not contain '{letter}'")).collect()
    }

    fn selectable(&self) -> &'static [Selectable] {
        &[
            ("involvedObject.kind", |event| text(event, &["involvedObject", "kind"]).to_owned()),
            ("involvedObject.namespace", |event| text(event, &["involvedObject", "namespace"]).to_owned()),
            ("involvedObject.name", |event| text(event, &["involvedObject", "name"]).to_owned()),
            ("involvedObject.uid", |event| text(event, &["involvedObject", "uid"]).to_owned()),
            ("involvedObject.apiVersion", |event| text(event, &["involvedObject", "apiVersion"]).to_owned()),
            ("involvedObject.resourceVersion", |event| text(event, &["involvedObject", "resourceVersion"]).to_owned()),
            ("involvedObject.fieldPath", |event| text(event, &["involvedObject", "fieldPath"]).to_owned()),
            ("reason", |event| text(event, &["reason"]).to_owned()),
            ("reportingComponent", |event| text(event, &["reportingComponent"]).to_owned()),
            ("source", source),
            ("type", |event| text(event, &["type"]).to_owned()),
        ]
    }
}

/// Who saw it, whichever field says so.
fn source(event: &Value) -> String {
    let component = text(event, &["source", "component"]);
    if component.is_empty() { text(event, &["reportingComponent"]) } else { component }.to_owned()
}

fn is_new(scene: &Scene<'_>) -> bool {
    scene.kind.group == "events.k8s.io"
}

fn check_series(object: &Value, flaws: &mut FieldErrors) {
    let Some(series) = at(object, &["series"]) else { return };
    if at(series, &["count"]).and_then(Value::as_i64).unwrap_or(0) < 2 {
        flaws.invalid("series.count", "", "should be at least 2");
    }
    if text(series, &["lastObservedTime"]).is_empty() {
        flaws.required("series.lastObservedTime", "");
    }
}

fn check_always(object: &Value, new: bool, flaws: &mut FieldErrors) {
    let namespace = text(object, &["metadata", "namespace"]);
    let involved = text(object, &["involvedObject", "namespace"]);
    let dated = !text(object, &["eventTime"]).is_empty();
    let apart = match (dated, involved) {
        (false, "") => !matches!(namespace, "" | "default"),
        (false, involved) => involved != namespace,
        (true, "") => !matches!(namespace, "default" | "kube-system"),
        (true, _) => false,
    };
    if apart {
        flaws.invalid("involvedObject.namespace", involved, "does not match event.namespace");
    }
    if !dated {
        return;
    }
    let controller = text(object, &["reportingComponent"]);
    let path = if new { "reportingController" } else { "reportingComponent" };
    if controller.is_empty() {
        flaws.required(path, "");
    }
    for flaw in names::qualified(controller) {
        flaws.invalid(path, controller, &flaw);
    }
    for (field, most, needed) in
        [("reportingInstance", 128, true), ("action", 128, true), ("reason", 128, true), ("message", 1024, false)]
    {
        let value = text(object, &[field]);
        if value.is_empty() && needed {
            flaws.required(field, "");
        }
        if value.len() > most {
            flaws.invalid(field, "", &format!("can have at most {most} characters"));
        }
    }
}

/// A reference to an object, as Go shows its own struct.
fn reference(object: &Value) -> String {
    let fields = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let shown = fields.map(|(shown, field)| format!("\"{shown}\":{}", Value::from(text(object, &[field]))));
    format!("{{{}}}", shown.join(","))
}
