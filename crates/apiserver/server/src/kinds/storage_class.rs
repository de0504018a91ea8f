//! StorageClass.

use super::{AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print};
use crate::invalid::FieldErrors;
use crate::names;
use crate::store::Store;
use crate::value::{at, entries, list, map, set_absent, text, texts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const MOST_PARAMETERS: usize = 512;
const MOST_PARAMETER_BYTES: usize = 256 << 10;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "StorageClass",
    plural: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[
        NAME,
        column("Provisioner", "Who makes volumes of this class."),
        column("ReclaimPolicy", "What becomes of volumes when their claim is gone."),
        column("VolumeBindingMode", "When claims are bound."),
        column("AllowVolumeExpansion", "Whether claims may grow."),
        AGE,
    ],
    cells,
    space: "storageclasses",
    rules: &StorageClass,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    let name = text(object, &["metadata", "name"]);
    let shown = if sight.default_class == Some(name) { format!("{name} (default)") } else { name.to_owned() };
    vec![
        shown.into(),
        text(object, &["provisioner"]).into(),
        print::or(object, &["reclaimPolicy"], "Delete").into(),
        print::or(object, &["volumeBindingMode"], "Immediate").into(),
        (at(object, &["allowVolumeExpansion"]) == Some(&Value::Bool(true))).into(),
        print::age(object, sight),
    ]
}

/// The class that claims without one get: the newest that is marked, and of those the first by name.
pub(crate) fn default_class(store: &Store) -> Option<String> {
    let classes = store
        .all(KIND.space)
        .map(|(name, class)| (name, serde_json::from_slice::<Value>(&class.bytes).unwrap_or_default()));
    let marked = classes.filter(|(_, class)| {
        DEFAULT.iter().any(|annotation| text(class, &["metadata", "annotations", annotation]) == "true")
    });
    // Classes come in order of their names, so the first of the newest is kept.
    let newest = marked.reduce(|best, next| {
        let created = |class: &Value| text(class, &["metadata", "creationTimestamp"]).to_owned();
        if created(&next.1) > created(&best.1) { next } else { best }
    });
    newest.map(|(name, _)| name.to_string())
}

#[derive(Debug)]
struct StorageClass;

impl Rules for StorageClass {
    fn fill_in(&self, object: &mut Value) {
        set_absent(object, &["reclaimPolicy"], "Delete");
        set_absent(object, &["volumeBindingMode"], "Immediate");
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_driver(object, "provisioner", flaws);
        check_parameters(object, false, flaws);
        if !text(object, &["reclaimPolicy"]).is_empty() {
            check_one_of(object, "reclaimPolicy", &["Delete", "Retain"], flaws);
        }
        check_one_of(object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], flaws);
        check_topologies(object, flaws);
    }

    fn warn(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (index, term) in list(new, &["allowedTopologies"]).iter().enumerate() {
            for (place, expression) in list(term, &["matchLabelExpressions"]).iter().enumerate() {
                let Some(instead) = successor(text(expression, &["key"])) else { continue };
                let path = format!("allowedTopologies[{index}].matchLabelExpressions[{place}].key");
                warnings.push(format!("{path}: {instead}"));
            }
        }
        warnings
    }

    fn check_change(&self, new: &Value, old: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            let value =
                |object| at(object, &[field]).filter(|value| value.as_object().is_none_or(|map| !map.is_empty()));
            if value(new) != value(old) {
                flaws.invalid(field, value(new).cloned().unwrap_or_default(), "field is immutable");
            }
        }
    }
}

fn check_one_of(object: &Value, field: &str, supported: &[&str], flaws: &mut FieldErrors) {
    let value = text(object, &[field]);
    if !supported.contains(&value) {
        flaws.unsupported(field, value, supported);
    }
}

/// The name of who provisions: a qualified name, in whatever case.
pub(super) fn check_driver(object: &Value, field: &str, flaws: &mut FieldErrors) {
    let name = text(object, &[field]);
    if name.is_empty() {
        flaws.required(field, "");
        return;
    }
    let name = name.to_lowercase();
    for flaw in names::qualified(&name) {
        flaws.invalid(field, name.as_str(), &flaw);
    }
}

/// Parameters: not too many, and none without a key.
pub(super) fn check_parameters(object: &Value, some: bool, flaws: &mut FieldErrors) {
    let count = map(object, &["parameters"]).map_or(0, serde_json::Map::len);
    if count > MOST_PARAMETERS {
        flaws.too_long("parameters", MOST_PARAMETERS);
        return;
    }
    let mut bytes = 0;
    for (key, value) in entries(object, &["parameters"]) {
        if key.is_empty() {
            flaws.invalid("parameters", key, "field can not be empty.");
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > MOST_PARAMETER_BYTES {
        flaws.too_long("parameters", MOST_PARAMETER_BYTES);
    }
    if some && count == 0 {
        flaws.required("parameters", "must contain at least one key/value pair");
    }
}

fn check_topologies(object: &Value, flaws: &mut FieldErrors) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (index, term) in list(object, &["allowedTopologies"]).iter().enumerate() {
        let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (place, expression) in list(term, &["matchLabelExpressions"]).iter().enumerate() {
            let path = format!("allowedTopologies[{index}].matchLabelExpressions[{place}]");
            let key = text(expression, &["key"]);
            let mut values = BTreeSet::new();
            if list(expression, &["values"]).is_empty() {
                flaws.required(format!("{path}.values"), "");
            }
            for (at, value) in texts(expression, &["values"]).enumerate() {
                if !values.insert(value) {
                    flaws.duplicate(format!("{path}.values[{at}]"), value);
                }
            }
            for flaw in names::qualified(key) {
                flaws.invalid(format!("{path}.key"), key, &flaw);
            }
            if keys.contains_key(key) {
                flaws.duplicate(format!("{path}.key"), key);
            }
            keys.insert(key, values);
        }
        if seen.contains(&keys) {
            flaws.duplicate(format!("allowedTopologies[{index}].matchLabelExpressions"), "");
        }
        seen.push(keys);
    }
}

/// What to say of a label that has been given another name.
fn successor(label: &str) -> Option<String> {
    let (since, instead) = match label {
        "beta.kubernetes.io/arch" => ("v1.14", "kubernetes.io/arch"),
        "beta.kubernetes.io/os" => ("v1.14", "kubernetes.io/os"),
        "failure-domain.beta.kubernetes.io/region" => ("v1.17", "topology.kubernetes.io/region"),
        "failure-domain.beta.kubernetes.io/zone" => ("v1.17", "topology.kubernetes.io/zone"),
        "beta.kubernetes.io/instance-type" => ("v1.17", "node.kubernetes.io/instance-type"),
        _ => return None,
    };
    Some(format!("deprecated since {since}; use {instead:?} instead"))
}
