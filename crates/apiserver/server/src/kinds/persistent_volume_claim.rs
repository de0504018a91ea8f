//! PersistentVolumeClaim.

use super::affinity::check_label_selector;
use super::persistent_volume::{
    BETA_CLASS, check_access_modes, check_mode_change, check_not_negative, check_volume_mode, class,
};
use super::rules::{only_its_own_part, protect, round_up};
use super::storage_class::default_class;
use super::{AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print, status_of, wide};
use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, entries, set, set_absent, set_default, take, text, texts};
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
    group: "",
    version: "v1",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[status_of("", "PersistentVolumeClaim")],
    columns: &[
        NAME,
        column("Status", "Its phase."),
        column("Volume", "The volume it is bound to."),
        column("Capacity", "How much the volume holds."),
        column("Access Modes", "How the volume can be mounted."),
        column("StorageClass", "Its class."),
        column("VolumeAttributesClass", "The class of attributes it asks for."),
        AGE,
        wide("VolumeMode", "Whether it asks for a file system or a block device."),
    ],
    cells,
    space: "persistentvolumeclaims",
    rules: &Claim,
    manners: Manners { shows_deleted: true, starts_as_draft: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
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
        print::or(object, &["spec", "volumeAttributesClassName"], "<unset>").into(),
        print::age(object, sight),
        print::or(object, &["spec", "volumeMode"], "<unset>").into(),
    ]
}

#[derive(Debug)]
struct Claim;

impl Rules for Claim {
    fn fill_in(&self, object: &mut Value) {
        set_default(object, &["status", "phase"], "Pending");
        set_absent(object, &["spec", "volumeMode"], "Filesystem");
        round_up(object, &["spec", "resources", "requests"]);
        round_up(object, &["spec", "resources", "limits"]);
        round_up(object, &["status", "capacity"]);
        round_up(object, &["status", "allocatedResources"]);
    }

    fn admit(&self, object: &mut Value, scene: &Scene<'_>) -> Result<(), Status> {
        let annotated = at(object, &["metadata", "annotations", BETA_CLASS]).is_some();
        if !annotated
            && at(object, &["spec", "storageClassName"]).is_none()
            && let Some(class) = default_class(scene.store)
        {
            set(object, &["spec", "storageClassName"], class);
        }
        protect(object, "kubernetes.io/pvc-protection");
        Ok(())
    }

    fn prepare(&self, object: &mut Value, _scene: &Scene<'_>) {
        set(object, &["status"], json!({"phase": "Pending"}));
        settle_data_source(object, None);
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        only_its_own_part(new, old, scene.subresource);
        if scene.subresource.is_empty() {
            settle_data_source(new, Some(old));
        }
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_claim_spec(object, flaws);
    }

    fn care(&self) -> Care {
        Care::Both
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        if scene.subresource == "status" {
            check_status(new, flaws);
            return;
        }
        self.check(new, scene, flaws);
        check_spec_change(new, old, flaws);
    }

    fn admit_change(&self, new: &Value, old: &Value, scene: &Scene<'_>) -> Result<(), Status> {
        let size = |object| text(object, &STORAGE).parse::<Quantity>().ok();
        if !scene.subresource.is_empty() || size(new) <= size(old) {
            return Ok(());
        }
        let refuse = |why| Err(Status::forbidden(&KIND, text(new, &["metadata", "name"]), why));
        if text(old, &["status", "phase"]) != "Bound" {
            return refuse("Only bound persistent volume claims can be expanded");
        }
        let name = class(new);
        let found = (!name.is_empty() && name == class(old)).then(|| scene.store.get("storageclasses", name)).flatten();
        let found = found.and_then(|found| serde_json::from_slice::<Value>(&found.bytes).ok());
        if found.and_then(|found| found.get("allowVolumeExpansion").and_then(Value::as_bool)) == Some(true) {
            return Ok(());
        }
        refuse(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
        )
    }

    fn warn(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
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

/// Of `dataSource` and `dataSourceRef` each is what the other is, if only one is set.
fn settle_data_source(object: &mut Value, old: Option<&Value>) {
    const SOURCE: [&str; 2] = ["spec", "dataSource"];
    const REFERENCE: [&str; 2] = ["spec", "dataSourceRef"];
    let had = old.is_some_and(|old| at(old, &SOURCE).is_some());
    // A source in another namespace is behind a gate that is closed, unless the claim had one before.
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

/// What a claim asks for, be it in a template.
pub(super) fn check_claim_spec(object: &Value, flaws: &mut FieldErrors) {
    let modes: Vec<&str> = texts(object, &["spec", "accessModes"]).collect();
    if modes.is_empty() {
        flaws.required("spec.accessModes", "at least 1 access mode is required");
    }
    if let Some(selector) = at(object, &["spec", "selector"]) {
        check_label_selector(selector, "spec.selector", flaws);
    }
    check_access_modes(&modes, flaws);
    match at(object, &STORAGE).and_then(Value::as_str) {
        None => flaws.required("spec.resources[storage]", ""),
        Some(size) if size.parse::<Quantity>().is_ok_and(|size| size <= *Quantity::zero()) => {
            flaws.invalid("spec.resources[storage]", size, "must be greater than zero");
        }
        Some(_) => {}
    }
    check_class_name(object, "storageClassName", flaws);
    check_volume_mode(object, flaws);
    check_data_source(object, "dataSource", flaws);
    check_data_source(object, "dataSourceRef", flaws);
    let (source, reference) = (at(object, &["spec", "dataSource"]), at(object, &["spec", "dataSourceRef"]));
    let same = |field| source.and_then(|one| one.get(field)) == reference.and_then(|one| one.get(field));
    let of_one_namespace = reference.is_none_or(|one| text(one, &["namespace"]).is_empty());
    if source.is_some()
        && reference.is_some()
        && of_one_namespace
        && !["apiGroup", "kind", "name"].into_iter().all(same)
    {
        flaws.invalid("spec", json!({}), "must match dataSourceRef");
    }
    check_class_name(object, "volumeAttributesClassName", flaws);
}

fn check_class_name(object: &Value, field: &str, flaws: &mut FieldErrors) {
    let name = text(object, &["spec", field]);
    if !name.is_empty() {
        for flaw in names::subdomain(name, false) {
            flaws.invalid(format!("spec.{field}"), name, &flaw);
        }
    }
}

fn check_data_source(object: &Value, field: &str, flaws: &mut FieldErrors) {
    let Some(source) = at(object, &["spec", field]) else { return };
    let path = format!("spec.{field}");
    let [group, kind, name] = ["apiGroup", "kind", "name"].map(|part| text(source, &[part]));
    if name.is_empty() {
        flaws.required(format!("{path}.name"), "");
    }
    if kind.is_empty() {
        flaws.required(format!("{path}.kind"), "");
    }
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        flaws.invalid(path.as_str(), kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        for flaw in names::subdomain(group, false) {
            flaws.invalid(format!("{path}.apiGroup"), group, &flaw);
        }
    }
}

fn check_spec_change(new: &Value, old: &Value, flaws: &mut FieldErrors) {
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
            flaws.invalid(path, is.unwrap_or_default(), "field is immutable");
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
        flaws.forbidden("spec", &format!("{why}\n{}", go_diff::diff(&spec(&expected), &spec(&found))));
    }
    let size = |object, path: &[&str]| text(object, path).parse::<Quantity>().unwrap_or(Quantity::zero().clone());
    let held = size(old, &["status", "capacity", "storage"]);
    if size(new, &STORAGE) < size(old, &STORAGE) && size(new, &STORAGE) <= held {
        flaws.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
    check_mode_change(new, old, flaws);
    if at(new, &ATTRIBUTES) != at(old, &ATTRIBUTES)
        && at(old, &["status", "currentVolumeAttributesClassName"]).is_some()
    {
        let what = match at(new, &ATTRIBUTES).and_then(Value::as_str) {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return,
        };
        let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        flaws.forbidden("spec.volumeAttributesClassName", &why);
    }
}

fn check_status(new: &Value, flaws: &mut FieldErrors) {
    if texts(new, &["spec", "accessModes"]).next().is_none() {
        flaws.required("Spec.accessModes", "");
    }
    for (name, value) in entries(new, &["status", "capacity"]) {
        check_not_negative(value, &format!("status.capacity[{name}]"), flaws);
    }
    let native = |name: &str| !name.contains('/') || name.contains("kubernetes.io/");
    let path = "status.allocatedResourceStatuses";
    for (name, state) in entries(new, &["status", "allocatedResourceStatuses"]) {
        if native(name) && name != "storage" {
            flaws.unsupported(path, name, &["storage"]);
        }
        if !RESIZE_STATES.contains(&state.as_str().unwrap_or_default()) {
            flaws.unsupported(path, name, &RESIZE_STATES);
        }
    }
    for (name, value) in entries(new, &["status", "allocatedResources"]) {
        if native(name) && name != "storage" {
            flaws.unsupported("status.allocatedResources", name, &["storage"]);
        } else {
            check_not_negative(value, &format!("status.allocatedResources[{name}]"), flaws);
        }
    }
}
