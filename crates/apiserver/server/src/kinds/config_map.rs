//! ConfigMap.

use super::{AGE, ALL_VERBS, Kind, MANNERS, NAME, Rules, Scene, Sight, column, print};
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::value::{at, entries, map};
use serde_json::Value;

/// What all keys and values may take together.
pub(super) const MOST_BYTES: usize = 1 << 20;

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, column("Data", "How many entries there are."), AGE],
    cells,
    space: "configmaps",
    rules: &ConfigMap,
    manners: MANNERS,
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let count =
        ["data", "binaryData"].iter().filter_map(|part| map(object, &[part])).map(serde_json::Map::len).sum::<usize>();
    vec![print::name(object), count.into(), print::age(object, sight)]
}

#[derive(Debug)]
struct ConfigMap;

impl Rules for ConfigMap {
    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let mut bytes = 0;
        for (key, value) in entries(object, &["data"]) {
            for flaw in names::config_key(key) {
                flaws.invalid(format!("data[{key}]"), key, &flaw);
            }
            if at(object, &["binaryData", key]).is_some() {
                flaws.invalid(format!("data[{key}]"), key, "duplicate of key present in binaryData");
            }
            bytes += value.as_str().map_or(0, str::len);
        }
        for (key, value) in entries(object, &["binaryData"]) {
            for flaw in names::config_key(key) {
                flaws.invalid(format!("binaryData[{key}]"), key, &flaw);
            }
            bytes += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        }
        if bytes > MOST_BYTES {
            flaws.too_long("", MOST_BYTES);
        }
    }

    fn care(&self) -> Care {
        Care::Both
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_immutable(new, old, &["data", "binaryData"], flaws);
        self.check(new, scene, flaws);
    }
}

/// What is marked as immutable stays as it is, and stays marked.
pub(super) fn check_immutable(new: &Value, old: &Value, parts: &[&str], flaws: &mut FieldErrors) {
    let yes = Some(&Value::Bool(true));
    if at(old, &["immutable"]) != yes {
        return;
    }
    if at(new, &["immutable"]) != yes {
        flaws.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for part in parts {
        if map(new, &[part]).filter(|map| !map.is_empty()) != map(old, &[part]).filter(|map| !map.is_empty()) {
            flaws.forbidden(*part, "field is immutable when `immutable` is set");
        }
    }
}
