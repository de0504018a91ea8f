//! PersistentVolumeClaim.

use super::persistent_volume::{
    BETA_CLASS, class, validate_access_modes, validate_mode_change, validate_not_negative, validate_volume_mode,
};
use super::selectors::validate_label_selector;
use super::storage_class::default_class;
use super::strategy::{add_protection_finalizer, restore_read_only_parts, round_up_to_milli};
use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print,
    status_of, wide,
};
use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, entries, set, set_if_absent, set_if_empty, take, text, texts};
use bindery_model::Quantity;
use serde_json::{Value, json};

const STORAGE: [&str; 4] = ["spec", "resources", "requests", "storage"];
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

pub(crate) static KIND: Kind = Kind {
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    short_names: &["pvc"],
    namespaced: true,
    subresources: &[status_of("", "PersistentVolumeClaim")],
    columns: &[
        NAME,
        column("Status", "The phase."),
        column("Volume", "The bound volume."),
        column("Capacity", "The capacity of the volume."),
        column("Access Modes", "The access modes of the volume."),
        column("StorageClass", "The storage class."),
        column("VolumeAttributesClass", "The requested volume attributes class."),
        AGE,
        wide("VolumeMode", "The requested mode: Filesystem or Block."),
    ],
    cells,
    strategy: &Claim,
    behavior: Behavior { shows_deleted: true, starts_as_draft: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let volume = text(object, &["spec", "volumeName"]);
    let bound = !volume.is_empty();
    let capacity = if bound { text(object, &["status", "capacity", "storage"]) } else { "" };
    let modes = if bound { print::access_modes(object, &["status", "accessModes"]) } else { String::new() };
    vec![
        print::name(object),
        print::phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        print::text_or(object, &["spec", "volumeAttributesClassName"], "<unset>").into(),
        print::age(object, context),
        print::text_or(object, &["spec", "volumeMode"], "<unset>").into(),
    ]
}

#[derive(Debug)]
struct Claim;

impl Strategy for Claim {
    fn set_defaults(&self, object: &mut Value) {
        set_if_empty(object, &["status", "phase"], "Pending");
        set_if_absent(object, &["spec", "volumeMode"], "Filesystem");
        round_up_to_milli(object, &["spec", "resources", "requests"]);
        round_up_to_milli(object, &["spec", "resources", "limits"]);
        round_up_to_milli(object, &["status", "capacity"]);
        round_up_to_milli(object, &["status", "allocatedResources"]);
    }

    fn admit(&self, object: &mut Value, context: &WriteContext<'_>) -> Result<(), Status> {
        let annotated = at(object, &["metadata", "annotations", BETA_CLASS]).is_some();
        if !annotated
            && at(object, &["spec", "storageClassName"]).is_none()
            && let Some(class) = default_class(context.store)
        {
            set(object, &["spec", "storageClassName"], class);
        }
        add_protection_finalizer(object, "kubernetes.io/pvc-protection");
        Ok(())
    }

    fn prepare_for_create(&self, object: &mut Value, _context: &WriteContext<'_>) {
        set(object, &["status"], json!({"phase": "Pending"}));
        normalize_data_sources(object, None);
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        restore_read_only_parts(new, old, context.subresource);
        if context.subresource.is_empty() {
            normalize_data_sources(new, Some(old));
        }
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_claim_spec(object, errors);
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::UpdateAndCreate
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        if context.subresource == "status" {
            validate_status(new, errors);
            return;
        }
        self.validate(new, context, errors);
        validate_spec_change(new, old, errors);
    }

    fn admit_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>) -> Result<(), Status> {
        let size = |object| text(object, &STORAGE).parse::<Quantity>().ok();
        if !context.subresource.is_empty() || size(new) <= size(old) {
            return Ok(());
        }
        let reject = |why| Err(Status::forbidden(&KIND, text(new, &["metadata", "name"]), why));
        if text(old, &["status", "phase"]) != "Bound" {
            return reject("Only bound persistent volume claims can be expanded");
        }
        let name = class(new);
        let found =
            (!name.is_empty() && name == class(old)).then(|| context.store.get("storageclasses", name)).flatten();
        let found = found.and_then(|found| serde_json::from_slice::<Value>(&found.bytes).ok());
        if found.and_then(|found| found.get("allowVolumeExpansion").and_then(Value::as_bool)) == Some(true) {
            return Ok(());
        }
        reject(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
        )
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if at(new, &["metadata", "annotations", BETA_CLASS]).is_some() {
            let path = format!("metadata.annotations[{BETA_CLASS}]");
            warnings.push(format!("{path}: deprecated since v1.8; use \"storageClassName\" attribute instead"));
        }
        for part in ["requests", "limits"] {
            let quantity = text(new, &["spec", "resources", part, "storage"]);
            if quantity.parse::<Quantity>().is_ok_and(|quantity| quantity.nanos() % 1_000_000_000 != 0) {
                let path = format!("spec.resources.{part}[storage]");
                warnings.push(format!("{path}: fractional byte value \"{quantity}\" is invalid, must be an integer"));
            }
        }
        warnings
    }
}

/// If only one of `dataSource` and `dataSourceRef` is set, the other is copied from it.
fn normalize_data_sources(object: &mut Value, old: Option<&Value>) {
    const SOURCE: [&str; 2] = ["spec", "dataSource"];
    const REFERENCE: [&str; 2] = ["spec", "dataSourceRef"];
    let had = old.is_some_and(|old| at(old, &SOURCE).is_some());
    // The feature gate for sources in another namespace is off, but an existing one is kept.
    let had_reference = old.is_some_and(|old| at(old, &REFERENCE).is_some());
    if !text(object, &["spec", "dataSourceRef", "namespace"]).is_empty() && !had_reference {
        take(object, &REFERENCE);
    }
    if at(object, &REFERENCE).is_none() && at(object, &SOURCE).is_some() && !had {
        let of = |field| text(object, &["spec", "dataSource", field]);
        let known = matches!(
            (of("apiGroup"), of("kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !known {
            take(object, &SOURCE);
        }
    }
    match (at(object, &SOURCE).cloned(), at(object, &REFERENCE).cloned()) {
        (Some(source), None) => set(object, &REFERENCE, source),
        (None, Some(reference)) if text(&reference, &["namespace"]).is_empty() => set(object, &SOURCE, reference),
        (_, _) => {}
    }
}

/// Validates the spec of a claim or of a claim template.
pub(super) fn validate_claim_spec(object: &Value, errors: &mut FieldErrors) {
    let modes: Vec<&str> = texts(object, &["spec", "accessModes"]).collect();
    if modes.is_empty() {
        errors.required("spec.accessModes", "at least 1 access mode is required");
    }
    if let Some(selector) = at(object, &["spec", "selector"]) {
        validate_label_selector(selector, "spec.selector", errors);
    }
    validate_access_modes(&modes, errors);
    match at(object, &STORAGE).and_then(Value::as_str) {
        None => errors.required("spec.resources[storage]", ""),
        Some(size) if size.parse::<Quantity>().is_ok_and(|size| size <= *Quantity::zero()) => {
            errors.invalid("spec.resources[storage]", size, "must be greater than zero");
        }
        Some(_) => {}
    }
    validate_class_name(object, "storageClassName", errors);
    validate_volume_mode(object, errors);
    validate_data_source(object, "dataSource", errors);
    validate_data_source(object, "dataSourceRef", errors);
    let (source, reference) = (at(object, &["spec", "dataSource"]), at(object, &["spec", "dataSourceRef"]));
    let same = |field| source.and_then(|one| one.get(field)) == reference.and_then(|one| one.get(field));
    let of_one_namespace = reference.is_none_or(|one| text(one, &["namespace"]).is_empty());
    if source.is_some()
        && reference.is_some()
        && of_one_namespace
        && !["apiGroup", "kind", "name"].into_iter().all(same)
    {
        errors.invalid("spec", json!({}), "must match dataSourceRef");
    }
    validate_class_name(object, "volumeAttributesClassName", errors);
}

fn validate_class_name(object: &Value, field: &str, errors: &mut FieldErrors) {
    let name = text(object, &["spec", field]);
    if !name.is_empty() {
        for error in names::subdomain(name, false) {
            errors.invalid(format!("spec.{field}"), name, &error);
        }
    }
}

fn validate_data_source(object: &Value, field: &str, errors: &mut FieldErrors) {
    let Some(source) = at(object, &["spec", field]) else { return };
    let path = format!("spec.{field}");
    let [group, kind, name] = ["apiGroup", "kind", "name"].map(|part| text(source, &[part]));
    if name.is_empty() {
        errors.required(format!("{path}.name"), "");
    }
    if kind.is_empty() {
        errors.required(format!("{path}.kind"), "");
    }
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        errors.invalid(path.as_str(), kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        for error in names::subdomain(group, false) {
            errors.invalid(format!("{path}.apiGroup"), group, &error);
        }
    }
}

fn validate_spec_change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const CLASS: [&str; 2] = ["spec", "storageClassName"];
    const ATTRIBUTES: [&str; 2] = ["spec", "volumeAttributesClassName"];
    let annotation = |object| at(object, &["metadata", "annotations", BETA_CLASS]).and_then(Value::as_str);
    let (was, is) = (annotation(old), annotation(new));
    let (mut expected, mut found) = (old.clone(), new.clone());
    if text(old, &["spec", "volumeName"]).is_empty() {
        copy(new, &mut expected, &["spec", "volumeName"]);
    }
    let set_now = at(old, &CLASS).is_none().then(|| at(new, &CLASS).and_then(Value::as_str)).flatten();
    if was.is_some() && set_now == was && (is.is_none() || is == was) {
        take(&mut found, &CLASS);
    } else {
        if is != was {
            let path = format!("metadata.annotations.{BETA_CLASS}");
            errors.invalid(path, is.unwrap_or_default(), "field is immutable");
        }
        if set_now.is_some() && (was.is_none() || was == set_now) {
            take(&mut found, &CLASS);
        }
    }
    if text(new, &["status", "phase"]) == "Bound" {
        if at(new, &STORAGE[..3]).is_some() {
            copy(old, &mut found, &STORAGE);
        }
        copy(old, &mut found, &ATTRIBUTES);
    }
    if at(&found, &["spec"]) != at(&expected, &["spec"]) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        let spec = |object: &Value| go_diff::claim_spec(at(object, &["spec"]).unwrap_or(&Value::Null));
        errors.forbidden("spec", &format!("{why}\n{}", go_diff::diff(&spec(&expected), &spec(&found))));
    }
    let size = |object, path: &[&str]| text(object, path).parse::<Quantity>().unwrap_or(Quantity::zero().clone());
    let held = size(old, &["status", "capacity", "storage"]);
    if size(new, &STORAGE) < size(old, &STORAGE) && size(new, &STORAGE) <= held {
        errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
    validate_mode_change(new, old, errors);
    if at(new, &ATTRIBUTES) != at(old, &ATTRIBUTES)
        && at(old, &["status", "currentVolumeAttributesClassName"]).is_some()
    {
        let what = match at(new, &ATTRIBUTES).and_then(Value::as_str) {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return,
        };
        let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.forbidden("spec.volumeAttributesClassName", &why);
    }
}

fn validate_status(new: &Value, errors: &mut FieldErrors) {
    if texts(new, &["spec", "accessModes"]).next().is_none() {
        errors.required("Spec.accessModes", "");
    }
    for (name, value) in entries(new, &["status", "capacity"]) {
        validate_not_negative(value, &format!("status.capacity[{name}]"), errors);
    }
    let native = |name: &str| !name.contains('/') || name.contains("kubernetes.io/");
    let path = "status.allocatedResourceStatuses";
    for (name, state) in entries(new, &["status", "allocatedResourceStatuses"]) {
        if native(name) && name != "storage" {
            errors.unsupported(path, name, &["storage"]);
        }
        if !RESIZE_STATES.contains(&state.as_str().unwrap_or_default()) {
            errors.unsupported(path, name, &RESIZE_STATES);
        }
    }
    for (name, value) in entries(new, &["status", "allocatedResources"]) {
        if native(name) && name != "storage" {
            errors.unsupported("status.allocatedResources", name, &["storage"]);
        } else {
            validate_not_negative(value, &format!("status.allocatedResources[{name}]"), errors);
        }
    }
}
