//! PersistentVolume.

use super::affinity::{OLD_LABELS, check_node_selector, warn_of_old_labels};
use super::rules::{only_its_own_part, protect, round_up};
use super::{
    AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print, status_of, volume_source, wide,
};
use crate::api::second;
use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::status::Status;
use crate::value::{at, copy, entries, list, map, set, set_absent, set_default, take, text, texts};
use bindery_model::Quantity;
use serde_json::{Value, json};

/// The class, as it was said before there was a field for it.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BETA_MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
pub(super) const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[status_of("", "PersistentVolume")],
    columns: &[
        NAME,
        column("Capacity", "How much it holds."),
        column("Access Modes", "How it can be mounted."),
        column("Reclaim Policy", "What becomes of it when its claim is gone."),
        column("Status", "Its phase."),
        column("Claim", "The claim it is bound to."),
        column("StorageClass", "Its class."),
        column("VolumeAttributesClass", "The class of its attributes."),
        column("Reason", "Why it is in its phase."),
        AGE,
        wide("VolumeMode", "Whether it is a file system or a block device."),
    ],
    cells,
    space: "persistentvolumes",
    rules: &Volume,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
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
        print::or(object, &["spec", "volumeAttributesClassName"], "<unset>").into(),
        text(object, &["status", "reason"]).into(),
        print::age(object, sight),
        print::or(object, &["spec", "volumeMode"], "<unset>").into(),
    ]
}

/// The class of a volume or a claim: what the old annotation says, or the field.
pub(super) fn class(object: &Value) -> &str {
    let annotation = ["metadata", "annotations", BETA_CLASS];
    at(object, &annotation).and_then(Value::as_str).unwrap_or_else(|| text(object, &["spec", "storageClassName"]))
}

#[derive(Debug)]
struct Volume;

impl Rules for Volume {
    fn fill_in(&self, object: &mut Value) {
        set_default(object, &["status", "phase"], "Pending");
        set_default(object, &["spec", "persistentVolumeReclaimPolicy"], "Retain");
        set_absent(object, &["spec", "volumeMode"], "Filesystem");
        volume_source::fill_in(object);
        round_up(object, &["spec", "capacity"]);
    }

    fn admit(&self, object: &mut Value, _scene: &Scene<'_>) -> Result<(), Status> {
        protect(object, "kubernetes.io/pv-protection");
        Ok(())
    }

    fn prepare(&self, object: &mut Value, scene: &Scene<'_>) {
        set(object, &["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": second(scene.now)}));
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        only_its_own_part(new, old, scene.subresource);
        if scene.subresource != "status" {
            return;
        }
        const SINCE: [&str; 2] = ["status", "lastPhaseTransitionTime"];
        let same_phase = text(new, &["status", "phase"]) == text(old, &["status", "phase"]);
        if same_phase && at(new, &SINCE).is_none() {
            copy(old, new, &SINCE);
        } else if !same_phase && (at(new, &SINCE).is_none() || at(new, &SINCE) == at(old, &SINCE)) {
            set(new, &SINCE, second(scene.now));
        }
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_spec(object, flaws);
        let annotated = at(object, &["metadata", "annotations", BETA_MOUNT_OPTIONS]).is_some();
        if annotated && !volume_source::takes_old_mount_options(object) {
            let path = format!("metadata.annotations.{BETA_MOUNT_OPTIONS}");
            flaws.forbidden(path, "may not specify mount options for this volume type");
        }
    }

    fn care(&self) -> Care {
        Care::Twice
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        if scene.subresource == "status" {
            return;
        }
        // Upstream looks at the new state twice, and tells of every flaw twice.
        self.check(new, scene, flaws);
        self.check(new, scene, flaws);
        check_source_change(new, old, flaws);
        check_mode_change(new, old, flaws);
        let affinity = |object| at(object, &["spec", "nodeAffinity"]).cloned();
        if let Some(was) = affinity(old)
            && affinity(new) != Some(with_ga_labels(&was))
            && affinity(new).as_ref() != Some(&was)
        {
            let why = "field is immutable, except for updating from beta label to GA";
            flaws.invalid_text("nodeAffinity", &go_diff::node_affinity(affinity(new).as_ref()), why);
        }
        let attributes = |object| at(object, &["spec", "volumeAttributesClassName"]).cloned();
        if attributes(old).is_some() && attributes(new).is_none() {
            flaws.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
        }
    }

    fn warn(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
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
        warnings.extend(volume_source::warn(new));
        if let Some(required) = at(new, &["spec", "nodeAffinity", "required"]) {
            warnings.extend(warn_of_old_labels(required, "spec.nodeAffinity.required"));
        }
        warnings
    }
}

fn check_spec(object: &Value, flaws: &mut FieldErrors) {
    let modes: Vec<&str> = texts(object, &["spec", "accessModes"]).collect();
    if modes.is_empty() {
        flaws.required("spec.accessModes", "");
    }
    check_access_modes(&modes, flaws);
    check_capacity(object, flaws);
    let policy = text(object, &["spec", "persistentVolumeReclaimPolicy"]);
    let policies = ["Delete", "Recycle", "Retain"];
    if !policy.is_empty() && !policies.contains(&policy) {
        flaws.unsupported("spec.persistentVolumeReclaimPolicy", policy, &policies);
    }
    if at(object, &["spec", "nodeAffinity"]).is_some() {
        match at(object, &["spec", "nodeAffinity", "required"]) {
            Some(required) => check_node_selector(required, "spec.nodeAffinity.required", flaws),
            None => flaws.required("spec.nodeAffinity.required", "must specify required node constraints"),
        }
    }
    volume_source::check(object, flaws);
    if policy == "Recycle" && text(object, &["spec", "hostPath", "path"]) == "/" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        flaws.forbidden("spec.persistentVolumeReclaimPolicy", why);
    }
    let class = text(object, &["spec", "storageClassName"]);
    for flaw in if class.is_empty() { Vec::new() } else { names::subdomain(class, false) } {
        flaws.invalid("spec.storageClassName", class, &flaw);
    }
    check_volume_mode(object, flaws);
    match at(object, &["spec", "volumeAttributesClassName"]).and_then(Value::as_str) {
        None => {}
        Some(name) => {
            if name.is_empty() {
                flaws.required("spec.volumeAttributesClassName", "an empty string is disallowed");
            } else {
                for flaw in names::subdomain(name, false) {
                    flaws.invalid("spec.volumeAttributesClassName", name, &flaw);
                }
            }
            if at(object, &["spec", "csi"]).is_none() {
                flaws.required("spec.csi", "has to be specified when using volumeAttributesClassName");
            }
        }
    }
}

pub(super) fn check_access_modes(modes: &[&str], flaws: &mut FieldErrors) {
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        flaws.unsupported("spec.accessModes", *mode, &ACCESS_MODES);
    }
    let known = modes.iter().filter(|mode| ACCESS_MODES.contains(mode)).count();
    if modes.contains(&"ReadWriteOncePod") && known > 1 {
        flaws.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes");
    }
}

pub(super) fn check_volume_mode(object: &Value, flaws: &mut FieldErrors) {
    let mode = text(object, &["spec", "volumeMode"]);
    if at(object, &["spec", "volumeMode"]).is_some() && !matches!(mode, "Block" | "Filesystem") {
        flaws.unsupported("spec.volumeMode", mode, &["Block", "Filesystem"]);
    }
}

pub(super) fn check_mode_change(new: &Value, old: &Value, flaws: &mut FieldErrors) {
    let mode = at(new, &["spec", "volumeMode"]);
    if mode != at(old, &["spec", "volumeMode"]) {
        flaws.invalid("volumeMode", mode.cloned().unwrap_or_default(), "field is immutable");
    }
}

fn check_capacity(object: &Value, flaws: &mut FieldErrors) {
    let capacity = map(object, &["spec", "capacity"]);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        flaws.required("spec.capacity", "");
    }
    if at(object, &["spec", "capacity", "storage"]).is_none() || capacity.is_some_and(|capacity| capacity.len() > 1) {
        let value = at(object, &["spec", "capacity"]).cloned().unwrap_or_default();
        flaws.unsupported("spec.capacity", value, &["storage"]);
    }
    for (name, value) in entries(object, &["spec", "capacity"]) {
        let path = format!("spec.capacity[{name}]");
        check_not_negative(value, &path, flaws);
        let quantity = value.as_str().unwrap_or_default();
        if quantity.parse::<Quantity>().is_ok_and(|quantity| quantity <= *Quantity::zero()) {
            flaws.invalid(path, quantity, "must be greater than zero");
        }
    }
}

/// A quantity is not below zero. Upstream shows the number, not the text.
pub(super) fn check_not_negative(value: &Value, path: &str, flaws: &mut FieldErrors) {
    let quantity = value.as_str().unwrap_or_default().parse::<Quantity>();
    if let Some(quantity) = quantity.ok().filter(|quantity| quantity < Quantity::zero()) {
        let number = quantity.nanos().div_euclid(1_000_000_000);
        flaws.invalid_text(path, &number.to_string(), "must be a valid resource quantity");
    }
}

fn check_source_change(new: &Value, old: &Value, flaws: &mut FieldErrors) {
    const EXPAND: [&str; 3] = ["spec", "csi", "controllerExpandSecretRef"];
    if volume_source::found(new).eq(volume_source::found(old)) {
        return;
    }
    let (mut ours, theirs) = (volume_source::of(new), volume_source::of(old));
    if at(old, &EXPAND).is_none() && at(old, &EXPAND[..2]).is_some() {
        take(&mut ours, &["csi", "controllerExpandSecretRef"]);
    }
    if ours != theirs {
        let why = "spec.persistentvolumesource is immutable after creation";
        let diff = go_diff::diff(&go_diff::volume_source(&theirs), &go_diff::volume_source(&ours));
        flaws.forbidden("spec.persistentvolumesource", &format!("{why}\n{diff}"));
    }
}

/// The same affinity with labels that were renamed when they became stable.
fn with_ga_labels(affinity: &Value) -> Value {
    let mut affinity = affinity.clone();
    let mut terms = list(&affinity, &["required", "nodeSelectorTerms"]).to_vec();
    for expression in
        terms.iter_mut().filter_map(|term| term.get_mut("matchExpressions").and_then(Value::as_array_mut)).flatten()
    {
        if let Some((_, new, _)) = OLD_LABELS.iter().find(|(old, _, _)| text(expression, &["key"]) == *old) {
            set(expression, &["key"], *new);
        }
    }
    set(&mut affinity, &["required", "nodeSelectorTerms"], terms);
    affinity
}
