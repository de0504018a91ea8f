//! VolumeAttributesClass.

use super::rules::protect;
use super::storage_class::{check_driver, check_parameters};
use super::{AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print};
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::status::Status;
use crate::value::{at, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "VolumeAttributesClass",
    plural: "volumeattributesclasses",
    singular: "volumeattributesclass",
    short_names: &["vac"],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, column("DriverName", "Who gives volumes these attributes."), AGE],
    cells,
    space: "volumeattributesclasses",
    rules: &AttributesClass,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["driverName"]).into(), print::age(object, sight)]
}

#[derive(Debug)]
struct AttributesClass;

impl Rules for AttributesClass {
    fn admit(&self, object: &mut Value, _scene: &Scene<'_>) -> Result<(), Status> {
        protect(object, "kubernetes.io/vac-protection");
        Ok(())
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_driver(object, "driverName", flaws);
        check_parameters(object, true, flaws);
    }

    fn care(&self) -> Care {
        Care::Both
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        for field in ["driverName", "parameters"] {
            if at(new, &[field]) != at(old, &[field]) {
                flaws.forbidden(field, &format!("updates to {field} are forbidden."));
            }
        }
        self.check(new, scene, flaws);
    }
}
