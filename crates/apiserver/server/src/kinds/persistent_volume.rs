//! PersistentVolume.

use super::selectors::{DEPRECATED_NODE_LABELS, deprecated_label_warnings, validate_node_selector};
use super::strategy::{add_protection_finalizer, restore_read_only_parts, round_up_to_milli};
use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column, print,
    status_of, volume_source, wide,
};
use crate::api::second;
use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, entries, list, map, set, set_if_absent, set_if_empty, take, text, texts};
use bindery_model::Quantity;
use serde_json::{Value, json};

/// The annotation for the class, before there was a field for it.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BETA_MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
pub(super) const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(crate) static KIND: Kind = Kind {
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    short_names: &["pv"],
    subresources: &[status_of("", "PersistentVolume")],
    columns: &[
        NAME,
        column("Capacity", "The capacity."),
        column("Access Modes", "The access modes."),
        column("Reclaim Policy", "What happens to the volume when its claim is deleted."),
        column("Status", "The phase."),
        column("Claim", "The bound claim."),
        column("StorageClass", "The storage class."),
        column("VolumeAttributesClass", "The volume attributes class."),
        column("Reason", "The reason for the phase."),
        AGE,
        wide("VolumeMode", "Filesystem or Block."),
    ],
    cells,
    strategy: &Volume,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    let claim = map(object, &["spec", "claimRef"]).map(|_| {
        let of = |field| text(object, &["spec", "claimRef", field]);
        format!("{}/{}", of("namespace"), of("name"))
    });
    vec![
        print::name(object),
        text(object, &["spec", "capacity", "storage"]).into(),
        print::access_modes(object, &["spec", "accessModes"]).into(),
        text(object, &["spec", "persistentVolumeReclaimPolicy"]).into(),
        print::phase(object).into(),
        claim.unwrap_or_default().into(),
        class(object).into(),
        print::text_or(object, &["spec", "volumeAttributesClassName"], "<unset>").into(),
        text(object, &["status", "reason"]).into(),
        print::age(object, context),
        print::text_or(object, &["spec", "volumeMode"], "<unset>").into(),
    ]
}

/// The class of a volume or a claim, from the legacy annotation or the field.
pub(super) fn class(object: &Value) -> &str {
    let annotation = ["metadata", "annotations", BETA_CLASS];
    at(object, &annotation).and_then(Value::as_str).unwrap_or_else(|| text(object, &["spec", "storageClassName"]))
}

#[derive(Debug)]
struct Volume;

impl Strategy for Volume {
    fn set_defaults(&self, object: &mut Value) {
        set_if_empty(object, &["status", "phase"], "Pending");
        set_if_empty(object, &["spec", "persistentVolumeReclaimPolicy"], "Retain");
        set_if_absent(object, &["spec", "volumeMode"], "Filesystem");
        volume_source::set_defaults(object);
        round_up_to_milli(object, &["spec", "capacity"]);
    }

    fn admit(&self, object: &mut Value, _context: &WriteContext<'_>) -> Result<(), Status> {
        add_protection_finalizer(object, "kubernetes.io/pv-protection");
        Ok(())
    }

    fn prepare_for_create(&self, object: &mut Value, context: &WriteContext<'_>) {
        set(object, &["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": second(context.now)}));
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        restore_read_only_parts(new, old, context.subresource);
        if context.subresource != "status" {
            return;
        }
        const SINCE: [&str; 2] = ["status", "lastPhaseTransitionTime"];
        let same_phase = text(new, &["status", "phase"]) == text(old, &["status", "phase"]);
        if same_phase && at(new, &SINCE).is_none() {
            copy(old, new, &SINCE);
        } else if !same_phase && (at(new, &SINCE).is_none() || at(new, &SINCE) == at(old, &SINCE)) {
            set(new, &SINCE, second(context.now));
        }
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_spec(object, errors);
        let annotated = at(object, &["metadata", "annotations", BETA_MOUNT_OPTIONS]).is_some();
        if annotated && !volume_source::allows_mount_options_annotation(object) {
            let path = format!("metadata.annotations.{BETA_MOUNT_OPTIONS}");
            errors.forbidden(path, "may not specify mount options for this volume type");
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::CreateTwice
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        if context.subresource == "status" {
            return;
        }
        // Upstream validates the new state twice, and reports every error twice.
        self.validate(new, context, errors);
        self.validate(new, context, errors);
        validate_source_change(new, old, errors);
        validate_mode_change(new, old, errors);
        let affinity = |object| at(object, &["spec", "nodeAffinity"]).cloned();
        if let Some(was) = affinity(old)
            && affinity(new) != Some(with_ga_labels(&was))
            && affinity(new).as_ref() != Some(&was)
        {
            let why = "field is immutable, except for updating from beta label to GA";
            errors.invalid_text("nodeAffinity", &go_diff::node_affinity(affinity(new).as_ref()), why);
        }
        let attributes = |object| at(object, &["spec", "volumeAttributesClassName"]).cloned();
        if attributes(old).is_some() && attributes(new).is_none() {
            errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (annotation, instead) in [(BETA_CLASS, "storageClassName"), (BETA_MOUNT_OPTIONS, "mountOptions")] {
            if at(new, &["metadata", "annotations", annotation]).is_some() {
                let version = if annotation == BETA_CLASS { "v1.8" } else { "v1.31" };
                warnings.push(format!("metadata.annotations[{annotation}]: deprecated since {version}; use \"{instead}\" attribute instead"));
            }
        }
        if text(new, &["spec", "persistentVolumeReclaimPolicy"]) == "Recycle" {
            warnings.push(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to \
                 use dynamic provisioning."
                    .to_owned(),
            );
        }
        warnings.extend(volume_source::warnings(new));
        if let Some(required) = at(new, &["spec", "nodeAffinity", "required"]) {
            warnings.extend(deprecated_label_warnings(required, "spec.nodeAffinity.required"));
        }
        warnings
    }
}

fn validate_spec(object: &Value, errors: &mut FieldErrors) {
    let modes: Vec<&str> = texts(object, &["spec", "accessModes"]).collect();
    if modes.is_empty() {
        errors.required("spec.accessModes", "");
    }
    validate_access_modes(&modes, errors);
    validate_capacity(object, errors);
    let policy = text(object, &["spec", "persistentVolumeReclaimPolicy"]);
    let policies = ["Delete", "Recycle", "Retain"];
    if !policy.is_empty() && !policies.contains(&policy) {
        errors.unsupported("spec.persistentVolumeReclaimPolicy", policy, &policies);
    }
    if at(object, &["spec", "nodeAffinity"]).is_some() {
        match at(object, &["spec", "nodeAffinity", "required"]) {
            Some(required) => validate_node_selector(required, "spec.nodeAffinity.required", errors),
            None => errors.required("spec.nodeAffinity.required", "must specify required node constraints"),
        }
    }
    volume_source::validate(object, errors);
    if policy == "Recycle" && text(object, &["spec", "hostPath", "path"]) == "/" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden("spec.persistentVolumeReclaimPolicy", why);
    }
    let class = text(object, &["spec", "storageClassName"]);
    for error in if class.is_empty() { Vec::new() } else { names::subdomain(class, false) } {
        errors.invalid("spec.storageClassName", class, &error);
    }
    validate_volume_mode(object, errors);
    match at(object, &["spec", "volumeAttributesClassName"]).and_then(Value::as_str) {
        None => {}
        Some(name) => {
            if name.is_empty() {
                errors.required("spec.volumeAttributesClassName", "an empty string is disallowed");
            } else {
                for error in names::subdomain(name, false) {
                    errors.invalid("spec.volumeAttributesClassName", name, &error);
                }
            }
            if at(object, &["spec", "csi"]).is_none() {
                errors.required("spec.csi", "has to be specified when using volumeAttributesClassName");
            }
        }
    }
}

pub(super) fn validate_access_modes(modes: &[&str], errors: &mut FieldErrors) {
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.unsupported("spec.accessModes", *mode, &ACCESS_MODES);
    }
    let known = modes.iter().filter(|mode| ACCESS_MODES.contains(mode)).count();
    if modes.contains(&"ReadWriteOncePod") && known > 1 {
        errors.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes");
    }
}

pub(super) fn validate_volume_mode(object: &Value, errors: &mut FieldErrors) {
    let mode = text(object, &["spec", "volumeMode"]);
    if at(object, &["spec", "volumeMode"]).is_some() && !matches!(mode, "Block" | "Filesystem") {
        errors.unsupported("spec.volumeMode", mode, &["Block", "Filesystem"]);
    }
}

pub(super) fn validate_mode_change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let mode = at(new, &["spec", "volumeMode"]);
    if mode != at(old, &["spec", "volumeMode"]) {
        errors.invalid("volumeMode", mode.cloned().unwrap_or_default(), "field is immutable");
    }
}

fn validate_capacity(object: &Value, errors: &mut FieldErrors) {
    let capacity = map(object, &["spec", "capacity"]);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        errors.required("spec.capacity", "");
    }
    if at(object, &["spec", "capacity", "storage"]).is_none() || capacity.is_some_and(|capacity| capacity.len() > 1) {
        let value = at(object, &["spec", "capacity"]).cloned().unwrap_or_default();
        errors.unsupported("spec.capacity", value, &["storage"]);
    }
    for (name, value) in entries(object, &["spec", "capacity"]) {
        let path = format!("spec.capacity[{name}]");
        validate_not_negative(value, &path, errors);
        let quantity = value.as_str().unwrap_or_default();
        if quantity.parse::<Quantity>().is_ok_and(|quantity| quantity <= *Quantity::zero()) {
            errors.invalid(path, quantity, "must be greater than zero");
        }
    }
}

/// A quantity must not be negative. Upstream prints the number, not the text.
pub(super) fn validate_not_negative(value: &Value, path: &str, errors: &mut FieldErrors) {
    let quantity = value.as_str().unwrap_or_default().parse::<Quantity>();
    if let Some(quantity) = quantity.ok().filter(|quantity| quantity < Quantity::zero()) {
        let number = quantity.nanos().div_euclid(1_000_000_000);
        errors.invalid_text(path, &number.to_string(), "must be a valid resource quantity");
    }
}

fn validate_source_change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    const EXPAND: [&str; 3] = ["spec", "csi", "controllerExpandSecretRef"];
    if volume_source::sources(new).eq(volume_source::sources(old)) {
        return;
    }
    let (mut ours, theirs) = (volume_source::source_object(new), volume_source::source_object(old));
    if at(old, &EXPAND).is_none() && at(old, &EXPAND[..2]).is_some() {
        take(&mut ours, &["csi", "controllerExpandSecretRef"]);
    }
    if ours != theirs {
        let why = "spec.persistentvolumesource is immutable after creation";
        let diff = go_diff::diff(&go_diff::volume_source(&theirs), &go_diff::volume_source(&ours));
        errors.forbidden("spec.persistentvolumesource", &format!("{why}\n{diff}"));
    }
}

/// The affinity with the stable names of deprecated labels.
fn with_ga_labels(affinity: &Value) -> Value {
    let mut affinity = affinity.clone();
    let mut terms = list(&affinity, &["required", "nodeSelectorTerms"]).to_vec();
    for expression in
        terms.iter_mut().filter_map(|term| term.get_mut("matchExpressions").and_then(Value::as_array_mut)).flatten()
    {
        if let Some((_, new, _)) = DEPRECATED_NODE_LABELS.iter().find(|(old, _, _)| text(expression, &["key"]) == *old)
        {
            set(expression, &["key"], *new);
        }
    }
    set(&mut affinity, &["required", "nodeSelectorTerms"], terms);
    affinity
}
