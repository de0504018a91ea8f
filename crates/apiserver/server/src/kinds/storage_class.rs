//! StorageClass.

use super::selectors::DEPRECATED_NODE_LABELS;
use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print,
};
use crate::field_errors::FieldErrors;
use crate::names;
use crate::store::Store;
use crate::value::{at, entries, list, map, set_if_absent, text, texts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 << 10;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "StorageClass",
    plural: "storageclasses",
    short_names: &["sc"],
    columns: &[
        NAME,
        column("Provisioner", "The provisioner."),
        column("ReclaimPolicy", "What happens to volumes when their claim is deleted."),
        column("VolumeBindingMode", "When claims are bound."),
        column("AllowVolumeExpansion", "Whether claims can be expanded."),
        AGE,
    ],
    cells,
    strategy: &StorageClass,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let name = text(object, &["metadata", "name"]);
    let shown = if context.default_class == Some(name) { format!("{name} (default)") } else { name.to_owned() };
    vec![
        shown.into(),
        text(object, &["provisioner"]).into(),
        print::text_or(object, &["reclaimPolicy"], "Delete").into(),
        print::text_or(object, &["volumeBindingMode"], "Immediate").into(),
        (at(object, &["allowVolumeExpansion"]) == Some(&Value::Bool(true))).into(),
        print::age(object, context),
    ]
}

/// The default class for claims: the newest that is marked as default, and of these the first by
/// name.
pub(crate) fn default_class(store: &Store) -> Option<String> {
    let classes = store
        .all(KIND.bucket())
        .map(|(name, class)| (name, serde_json::from_slice::<Value>(&class.bytes).unwrap_or_default()));
    let marked = classes.filter(|(_, class)| {
        DEFAULT.iter().any(|annotation| text(class, &["metadata", "annotations", annotation]) == "true")
    });
    // Classes are sorted by name, so this keeps the first of the newest.
    let newest = marked.reduce(|best, next| {
        let created = |class: &Value| text(class, &["metadata", "creationTimestamp"]).to_owned();
        if created(&next.1) > created(&best.1) { next } else { best }
    });
    newest.map(|(name, _)| name.to_string())
}

#[derive(Debug)]
struct StorageClass;

impl Strategy for StorageClass {
    fn set_defaults(&self, object: &mut Value) {
        set_if_absent(object, &["reclaimPolicy"], "Delete");
        set_if_absent(object, &["volumeBindingMode"], "Immediate");
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_driver(object, "provisioner", errors);
        validate_parameters(object, false, errors);
        if !text(object, &["reclaimPolicy"]).is_empty() {
            validate_one_of(object, "reclaimPolicy", &["Delete", "Retain"], errors);
        }
        validate_one_of(object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], errors);
        validate_topologies(object, errors);
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (index, term) in list(new, &["allowedTopologies"]).iter().enumerate() {
            for (position, expression) in list(term, &["matchLabelExpressions"]).iter().enumerate() {
                let key = text(expression, &["key"]);
                let renamed = DEPRECATED_NODE_LABELS.iter().find(|(old, _, _)| *old == key);
                let Some((_, new, since)) = renamed else { continue };
                let path = format!("allowedTopologies[{index}].matchLabelExpressions[{position}].key");
                warnings.push(format!("{path}: deprecated since {since}; use {new:?} instead"));
            }
        }
        warnings
    }

    fn validate_update(&self, new: &Value, old: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            let value =
                |object| at(object, &[field]).filter(|value| value.as_object().is_none_or(|map| !map.is_empty()));
            if value(new) != value(old) {
                errors.invalid(field, value(new).cloned().unwrap_or_default(), "field is immutable");
            }
        }
    }
}

fn validate_one_of(object: &Value, field: &str, supported: &[&str], errors: &mut FieldErrors) {
    let value = text(object, &[field]);
    if !supported.contains(&value) {
        errors.unsupported(field, value, supported);
    }
}

/// Validates the name of a provisioner or driver: a qualified name in any case.
pub(super) fn validate_driver(object: &Value, field: &str, errors: &mut FieldErrors) {
    let name = text(object, &[field]);
    if name.is_empty() {
        errors.required(field, "");
        return;
    }
    let name = name.to_lowercase();
    for error in names::qualified(&name) {
        errors.invalid(field, name.as_str(), &error);
    }
}

/// Validates parameters.
pub(super) fn validate_parameters(object: &Value, some: bool, errors: &mut FieldErrors) {
    let count = map(object, &["parameters"]).map_or(0, serde_json::Map::len);
    if count > MAX_PARAMETERS {
        errors.too_long("parameters", MAX_PARAMETERS);
        return;
    }
    let mut bytes = 0;
    for (key, value) in entries(object, &["parameters"]) {
        if key.is_empty() {
            errors.invalid("parameters", key, "field can not be empty.");
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > MAX_PARAMETER_BYTES {
        errors.too_long("parameters", MAX_PARAMETER_BYTES);
    }
    if some && count == 0 {
        errors.required("parameters", "must contain at least one key/value pair");
    }
}

fn validate_topologies(object: &Value, errors: &mut FieldErrors) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (index, term) in list(object, &["allowedTopologies"]).iter().enumerate() {
        let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (position, expression) in list(term, &["matchLabelExpressions"]).iter().enumerate() {
            let path = format!("allowedTopologies[{index}].matchLabelExpressions[{position}]");
            let key = text(expression, &["key"]);
            let mut values = BTreeSet::new();
            if list(expression, &["values"]).is_empty() {
                errors.required(format!("{path}.values"), "");
            }
            for (at, value) in texts(expression, &["values"]).enumerate() {
                if !values.insert(value) {
                    errors.duplicate(format!("{path}.values[{at}]"), value);
                }
            }
            for error in names::qualified(key) {
                errors.invalid(format!("{path}.key"), key, &error);
            }
            if keys.contains_key(key) {
                errors.duplicate(format!("{path}.key"), key);
            }
            keys.insert(key, values);
        }
        if seen.contains(&keys) {
            errors.duplicate(format!("allowedTopologies[{index}].matchLabelExpressions"), "");
        }
        seen.push(keys);
    }
}
