//! VolumeAttributesClass.

use super::storage_class::{validate_driver, validate_parameters};
use super::strategy::add_protection_finalizer;
use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print,
};
use crate::field_errors::FieldErrors;
use crate::metadata::MetadataValidation;
use crate::status::Status;
use crate::value::{at, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "VolumeAttributesClass",
    plural: "volumeattributesclasses",
    short_names: &["vac"],
    columns: &[NAME, column("DriverName", "The driver."), AGE],
    cells,
    strategy: &AttributesClass,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["driverName"]).into(), print::age(object, context)]
}

#[derive(Debug)]
struct AttributesClass;

impl Strategy for AttributesClass {
    fn admit(&self, object: &mut Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        add_protection_finalizer(object, "kubernetes.io/vac-protection");
        Ok(())
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_driver(object, "driverName", errors);
        validate_parameters(object, true, errors);
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::UpdateAndCreate
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        for field in ["driverName", "parameters"] {
            if at(new, &[field]) != at(old, &[field]) {
                errors.forbidden(field, &format!("updates to {field} are forbidden."));
            }
        }
        self.validate(new, context, errors);
    }
}
