//! CSINode.

use super::{
    AGE, Behavior, Column, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, print,
};
use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::value::{at, list, set, take, text, texts};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "CSINode",
    plural: "csinodes",
    columns: &[
        NAME,
        Column { name: "Drivers", kind: "integer", format: "", description: "The number of drivers.", priority: 0 },
        AGE,
    ],
    cells,
    strategy: &CsiNode,
    behavior: Behavior { unconditional_update: false, shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), list(object, &["spec", "drivers"]).len().into(), print::age(object, context)]
}

#[derive(Debug)]
struct CsiNode;

impl Strategy for CsiNode {
    fn set_defaults(&self, object: &mut Value) {
        if list(object, &["spec", "drivers"]).is_empty() {
            set(object, &["spec", "drivers"], Value::Null);
        }
    }

    fn prepare_for_update(&self, _new: &mut Value, _old: &Value, _context: &WriteContext<'_>) {}

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        let mut seen = BTreeSet::new();
        for (index, driver) in list(object, &["spec", "drivers"]).iter().enumerate() {
            let path = format!("spec.drivers[{index}]");
            let (name, id) = (text(driver, &["name"]), text(driver, &["nodeID"]));
            validate_driver_name(name, &format!("{path}.name"), errors);
            if id.is_empty() {
                errors.required(format!("{path}.nodeID"), "");
            } else if id.len() > 256 {
                errors.invalid(format!("{path}.nodeID"), id, "must be 256 characters or less");
            }
            if let Some(count) =
                at(driver, &["allocatable", "count"]).and_then(Value::as_i64).filter(|count| *count < 0)
            {
                errors.invalid(format!("{path}.allocatable.count"), count, "must be greater than or equal to 0");
            }
            if !seen.insert(name) {
                errors.duplicate(format!("{path}.name"), name);
            }
            let mut keys = BTreeSet::new();
            for key in texts(driver, &["topologyKeys"]) {
                if key.is_empty() {
                    errors.required(path.as_str(), "");
                }
                if !keys.insert(key) {
                    errors.duplicate(path.as_str(), key);
                }
                for error in names::qualified(key) {
                    errors.invalid(path.as_str(), key, &error);
                }
            }
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::Create
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        self.validate(new, context, errors);
        let lasting = |driver: &Value| {
            let mut driver = driver.clone();
            take(&mut driver, &["allocatable"]);
            driver
        };
        for was in list(old, &["spec", "drivers"]) {
            for is in list(new, &["spec", "drivers"]).iter().filter(|is| is.get("name") == was.get("name")) {
                if lasting(is) != lasting(was) {
                    errors.invalid_text("spec.drivers", &go_diff::csi_driver(&lasting(is)), "field is immutable");
                }
            }
        }
    }
}

/// The name of a CSI driver.
pub(super) fn validate_driver_name(name: &str, path: &str, errors: &mut FieldErrors) {
    if name.is_empty() {
        errors.required(path, "");
    }
    if name.len() > 63 {
        errors.too_long(path, 63);
    }
    if !name.is_empty() {
        for error in names::subdomain(&name.to_lowercase(), false) {
            errors.invalid(path, name, &error);
        }
    }
}
