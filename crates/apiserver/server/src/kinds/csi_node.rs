//! CSINode.

use super::{AGE, ALL_VERBS, Column, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, print};
use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::value::{at, list, set, take, text, texts};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "CSINode",
    plural: "csinodes",
    singular: "csinode",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[
        NAME,
        Column {
            name: "Drivers",
            kind: "integer",
            format: "",
            description: "How many drivers there are.",
            priority: 0,
        },
        AGE,
    ],
    cells,
    space: "csinodes",
    rules: &CsiNode,
    manners: Manners { unconditional_update: false, shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), list(object, &["spec", "drivers"]).len().into(), print::age(object, sight)]
}

#[derive(Debug)]
struct CsiNode;

impl Rules for CsiNode {
    fn fill_in(&self, object: &mut Value) {
        if list(object, &["spec", "drivers"]).is_empty() {
            set(object, &["spec", "drivers"], Value::Null);
        }
    }

    fn prepare_change(&self, _new: &mut Value, _old: &Value, _scene: &Scene<'_>) {}

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        let mut seen = BTreeSet::new();
        for (index, driver) in list(object, &["spec", "drivers"]).iter().enumerate() {
            let path = format!("spec.drivers[{index}]");
            let (name, id) = (text(driver, &["name"]), text(driver, &["nodeID"]));
            check_driver_name(name, &format!("{path}.name"), flaws);
            if id.is_empty() {
                flaws.required(format!("{path}.nodeID"), "");
            } else if id.len() > 256 {
                flaws.invalid(format!("{path}.nodeID"), id, "must be 256 characters or less");
            }
            if let Some(count) =
                at(driver, &["allocatable", "count"]).and_then(Value::as_i64).filter(|count| *count < 0)
            {
                flaws.invalid(format!("{path}.allocatable.count"), count, "must be greater than or equal to 0");
            }
            if !seen.insert(name) {
                flaws.duplicate(format!("{path}.name"), name);
            }
            let mut keys = BTreeSet::new();
            for key in texts(driver, &["topologyKeys"]) {
                if key.is_empty() {
                    flaws.required(path.as_str(), "");
                }
                if !keys.insert(key) {
                    flaws.duplicate(path.as_str(), key);
                }
                for flaw in names::qualified(key) {
                    flaws.invalid(path.as_str(), key, &flaw);
                }
            }
        }
    }

    fn care(&self) -> Care {
        Care::Whole
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        self.check(new, scene, flaws);
        let lasting = |driver: &Value| {
            let mut driver = driver.clone();
            take(&mut driver, &["allocatable"]);
            driver
        };
        for was in list(old, &["spec", "drivers"]) {
            for is in list(new, &["spec", "drivers"]).iter().filter(|is| is.get("name") == was.get("name")) {
                if lasting(is) != lasting(was) {
                    flaws.invalid_text("spec.drivers", &go_diff::csi_driver(&lasting(is)), "field is immutable");
                }
            }
        }
    }
}

/// The name of a CSI driver.
pub(super) fn check_driver_name(name: &str, path: &str, flaws: &mut FieldErrors) {
    if name.is_empty() {
        flaws.required(path, "");
    }
    if name.len() > 63 {
        flaws.too_long(path, 63);
    }
    if !name.is_empty() {
        for flaw in names::subdomain(&name.to_lowercase(), false) {
            flaws.invalid(path, name, &flaw);
        }
    }
}
