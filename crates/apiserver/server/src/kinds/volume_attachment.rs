//! VolumeAttachment.

use super::csi_node::check_driver_name;
use super::{AGE, ALL_VERBS, Column, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, column, print, status_of};
use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::metadata::Care;
use crate::names;
use crate::value::{at, copy, list, set, text};
use serde_json::{Value, json};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    singular: "volumeattachment",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: ALL_VERBS,
    subresources: &[status_of("storage.k8s.io", "VolumeAttachment")],
    columns: &[
        NAME,
        Column { name: "Attacher", kind: "string", format: "name", description: "Who attaches it.", priority: 0 },
        column("PV", "What is attached."),
        column("Node", "To which node."),
        Column { name: "Attached", kind: "boolean", format: "", description: "Whether it is attached.", priority: 0 },
        AGE,
    ],
    cells,
    space: "volumeattachments",
    rules: &Attachment,
    manners: Manners { unconditional_update: false, shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![
        print::name(object),
        text(object, &["spec", "attacher"]).into(),
        text(object, &["spec", "source", "persistentVolumeName"]).into(),
        text(object, &["spec", "nodeName"]).into(),
        at(object, &["status", "attached"]).cloned().unwrap_or(Value::Bool(false)),
        print::age(object, sight),
    ]
}

#[derive(Debug)]
struct Attachment;

impl Rules for Attachment {
    fn prepare(&self, object: &mut Value, _scene: &Scene<'_>) {
        set(object, &["status"], json!({"attached": false}));
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        if scene.subresource == "status" {
            copy(old, new, &["spec"]);
            // Upstream lets the status write nothing but the status here, unlike with most kinds.
            let status = at(new, &["status"]).cloned().unwrap_or_default();
            let managed = at(new, &["metadata", "managedFields"]).cloned();
            *new = old.clone();
            set(new, &["status"], status);
            if let Some(managed) = managed {
                set(new, &["metadata", "managedFields"], managed);
            }
        } else {
            copy(old, new, &["status"]);
        }
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_driver_name(text(object, &["spec", "attacher"]), "spec.attacher", flaws);
        let source = |field| at(object, &["spec", "source", field]);
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        let volume = source("persistentVolumeName").and_then(Value::as_str);
        match (source("inlineVolumeSpec"), volume) {
            (None, None) => flaws.required("spec.source", why),
            (Some(_), Some(_)) => flaws.forbidden("spec.source", why),
            (None, Some("")) => {
                flaws.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName");
            }
            (None, Some(_)) | (Some(_), None) => {}
        }
        if let (Some(inline), None) = (source("inlineVolumeSpec"), volume) {
            check_inline(inline, flaws);
        }
        let node = text(object, &["spec", "nodeName"]);
        for flaw in names::subdomain(node, false) {
            flaws.invalid("spec.nodeName", node, &flaw);
        }
        for error in ["attachError", "detachError"] {
            let code = at(object, &["status", error, "errorCode"]).and_then(Value::as_i64);
            if let Some(code) = code.filter(|code| *code < 0) {
                let why = "must be between 0 and 2147483647, inclusive";
                flaws.invalid(format!("status.{error}.errorCode"), code, why);
            }
        }
        for flaw in volume.map(|volume| names::subdomain(volume, false)).into_iter().flatten() {
            flaws.invalid("spec.source.persistentVolumeName", volume.unwrap_or_default(), &flaw);
        }
    }

    fn care(&self) -> Care {
        Care::Whole
    }

    fn check_change(&self, new: &Value, old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        self.check(new, scene, flaws);
        if at(new, &["spec"]) != at(old, &["spec"]) {
            let spec = at(new, &["spec"]).unwrap_or(&Value::Null);
            flaws.invalid_text("spec", &go_diff::attachment_spec(spec), "field is immutable");
        }
    }
}

/// A volume that is described in the attachment itself: only a driver's, and without what belongs to a volume that is kept.
fn check_inline(spec: &Value, flaws: &mut FieldErrors) {
    const PATH: &str = "spec.source.inlineVolumeSpec";
    const WHY: &str = "in the context of inline volumes";
    let present = |field: &str| {
        at(spec, &[field]).is_some_and(|value| value != "" && value.as_object().is_none_or(|map| !map.is_empty()))
    };
    for field in ["claimRef", "capacity"].into_iter().filter(|field| present(field)) {
        flaws.forbidden(format!("{PATH}.{field}"), &format!("may not be specified {WHY}"));
    }
    if at(spec, &["csi"]).is_none() {
        flaws.required(format!("{PATH}.csi"), &format!("has to be specified {WHY}"));
    }
    if list(spec, &["accessModes"]).is_empty() {
        flaws.required(format!("{PATH}.accessModes"), "");
    }
    if !matches!(text(spec, &["persistentVolumeReclaimPolicy"]), "" | "Retain") {
        flaws.forbidden(format!("{PATH}.persistentVolumeReclaimPolicy"), &format!("may only be Retain {WHY}"));
    }
    for field in ["nodeAffinity", "storageClassName"].into_iter().filter(|field| present(field)) {
        flaws.forbidden(format!("{PATH}.{field}"), &format!("may not be specified {WHY}"));
    }
    if !matches!(text(spec, &["volumeMode"]), "" | "Filesystem") {
        let why = format!("may not specify volumeMode other than Filesystem {WHY}");
        flaws.forbidden(format!("{PATH}.volumeMode"), &why);
    }
}
