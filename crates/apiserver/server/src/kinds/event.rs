//! Event in the core group, which is also its stored form.

use super::{
    Behavior, Column, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, PrintContext, Selectable, Strategy, WriteContext, column,
    print, wide,
};
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::value::{at, text};
use serde_json::Value;

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", "When the event last occurred."),
    column("Type", "Normal or Warning."),
    column("Reason", "The reason of the event."),
    column("Object", "The object of the event."),
    wide("Subobject", "The field of the object."),
    wide("Source", "The component that reported the event."),
    column("Message", "The message of the event."),
    wide("First Seen", "When the event first occurred."),
    wide("Count", "How often the event occurred."),
    Column { name: "Name", kind: "string", format: "name", description: "The event's name.", priority: 1 },
];

pub(super) const EVENT_BEHAVIOR: Behavior = Behavior { create_on_update: true, collected: false, ..DEFAULT_BEHAVIOR };

pub(crate) static KIND: Kind = Kind {
    kind: "Event",
    plural: "events",
    short_names: &["ev"],
    namespaced: true,
    columns: COLUMNS,
    cells,
    strategy: &Event,
    behavior: EVENT_BEHAVIOR,
    ..DEFAULT_KIND
};

/// The cells of an event in its stored form.
pub(super) fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let seen = |first: &str, fallback: &str| {
        let time = [first, fallback].into_iter().find(|time| !time.is_empty()).unwrap_or_default();
        print::since(time, context.now)
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

/// The strategy of both event kinds; validation is stricter for the newer group.
#[derive(Debug)]
pub(super) struct Event;

impl Strategy for Event {
    fn prepare_for_update(&self, _new: &mut Value, _old: &Value, _context: &WriteContext<'_>) {}

    fn validate(&self, object: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_always(object, is_new(context), errors);
        if !is_new(context) {
            return;
        }
        validate_series(object, errors);
        if at(object, &["eventTime"]).is_none_or(Value::is_null) {
            errors.required("eventTime", "");
        }
        let kind = text(object, &["type"]);
        if !matches!(kind, "Normal" | "Warning") {
            errors.invalid("type", "", &format!("has invalid value: {kind}"));
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
                errors.invalid(field, "", "needs to be unset");
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_always(new, is_new(context), errors);
        if !is_new(context) {
            return;
        }
        if at(new, &["series"]) != at(old, &["series"]) {
            validate_series(new, errors);
        }
        for (field, shown) in [
            ("involvedObject", "involvedObject"),
            ("reason", "reason"),
            ("message", "message"),
            ("source", "source"),
            ("firstTimestamp", "firstTimestamp"),
            ("lastTimestamp", "lastTimestamp"),
            ("count", "count"),
            // Upstream checks it twice.
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
                    errors.invalid_text(shown, &reference(now), "field is immutable");
                }
                (_, now) => errors.invalid(shown, now.cloned().unwrap_or_default(), "field is immutable"),
            }
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::Skip
    }

    fn validate_name(&self, name: &str, _prefix: bool) -> Vec<String> {
        let bad = ['/', '%'].into_iter().filter(|letter| name.contains(*letter));
        bad.map(|letter| format!("may not contain '{letter}'")).collect()
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
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

/// The component that reported the event, from either field.
fn source(event: &Value) -> String {
    let component = text(event, &["source", "component"]);
    if component.is_empty() { text(event, &["reportingComponent"]) } else { component }.to_owned()
}

fn is_new(context: &WriteContext<'_>) -> bool {
    context.kind.group == "events.k8s.io"
}

fn validate_series(object: &Value, errors: &mut FieldErrors) {
    let Some(series) = at(object, &["series"]) else { return };
    if at(series, &["count"]).and_then(Value::as_i64).unwrap_or(0) < 2 {
        errors.invalid("series.count", "", "should be at least 2");
    }
    if text(series, &["lastObservedTime"]).is_empty() {
        errors.required("series.lastObservedTime", "");
    }
}

fn validate_always(object: &Value, new: bool, errors: &mut FieldErrors) {
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
        errors.invalid("involvedObject.namespace", involved, "does not match event.namespace");
    }
    if !dated {
        return;
    }
    let controller = text(object, &["reportingComponent"]);
    let path = if new { "reportingController" } else { "reportingComponent" };
    if controller.is_empty() {
        errors.required(path, "");
    }
    for error in names::qualified(controller) {
        errors.invalid(path, controller, &error);
    }
    for (field, max, needed) in
        [("reportingInstance", 128, true), ("action", 128, true), ("reason", 128, true), ("message", 1024, false)]
    {
        let value = text(object, &[field]);
        if value.is_empty() && needed {
            errors.required(field, "");
        }
        if value.len() > max {
            errors.invalid(field, "", &format!("can have at most {max} characters"));
        }
    }
}

/// An object reference, as Go prints the struct.
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
