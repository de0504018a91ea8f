//! ConfigMap.

use super::{AGE, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print};
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::value::{at, entries, map};
use serde_json::Value;

/// The limit for the data of an object.
pub(super) const MAX_BYTES: usize = 1 << 20;

pub(crate) static KIND: Kind = Kind {
    kind: "ConfigMap",
    plural: "configmaps",
    short_names: &["cm"],
    namespaced: true,
    columns: &[NAME, column("Data", "The number of entries."), AGE],
    cells,
    strategy: &ConfigMap,
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let count =
        ["data", "binaryData"].iter().filter_map(|part| map(object, &[part])).map(serde_json::Map::len).sum::<usize>();
    vec![print::name(object), count.into(), print::age(object, context)]
}

#[derive(Debug)]
struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let mut bytes = 0;
        for (key, value) in entries(object, &["data"]) {
            for error in names::config_key(key) {
                errors.invalid(format!("data[{key}]"), key, &error);
            }
            if at(object, &["binaryData", key]).is_some() {
                errors.invalid(format!("data[{key}]"), key, "duplicate of key present in binaryData");
            }
            bytes += value.as_str().map_or(0, str::len);
        }
        for (key, value) in entries(object, &["binaryData"]) {
            for error in names::config_key(key) {
                errors.invalid(format!("binaryData[{key}]"), key, &error);
            }
            bytes += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        }
        if bytes > MAX_BYTES {
            errors.too_long("", MAX_BYTES);
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::UpdateAndCreate
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_immutable(new, old, &["data", "binaryData"], errors);
        self.validate(new, context, errors);
    }
}

/// The data of an immutable object cannot change, and it stays immutable.
pub(super) fn validate_immutable(new: &Value, old: &Value, parts: &[&str], errors: &mut FieldErrors) {
    let yes = Some(&Value::Bool(true));
    if at(old, &["immutable"]) != yes {
        return;
    }
    if at(new, &["immutable"]) != yes {
        errors.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for part in parts {
        if map(new, &[part]).filter(|map| !map.is_empty()) != map(old, &[part]).filter(|map| !map.is_empty()) {
            errors.forbidden(*part, "field is immutable when `immutable` is set");
        }
    }
}
