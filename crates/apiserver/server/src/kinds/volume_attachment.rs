//! VolumeAttachment.

use super::csi_node::validate_driver_name;
use super::{
    AGE, Behavior, Column, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, column,
    print, status_of,
};
use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::metadata::MetadataValidation;
use crate::names;
use crate::value::{at, copy, list, set, text};
use serde_json::{Value, json};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    subresources: &[status_of("storage.k8s.io", "VolumeAttachment")],
    columns: &[
        NAME,
        Column { name: "Attacher", kind: "string", format: "name", description: "The attacher.", priority: 0 },
        column("PV", "The attached volume."),
        column("Node", "The node."),
        Column {
            name: "Attached",
            kind: "boolean",
            format: "",
            description: "Whether the volume is attached.",
            priority: 0,
        },
        AGE,
    ],
    cells,
    strategy: &Attachment,
    behavior: Behavior { unconditional_update: false, shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![
        print::name(object),
        text(object, &["spec", "attacher"]).into(),
        text(object, &["spec", "source", "persistentVolumeName"]).into(),
        text(object, &["spec", "nodeName"]).into(),
        at(object, &["status", "attached"]).cloned().unwrap_or(Value::Bool(false)),
        print::age(object, context),
    ]
}

#[derive(Debug)]
struct Attachment;

impl Strategy for Attachment {
    fn prepare_for_create(&self, object: &mut Value, _context: &WriteContext<'_>) {
        set(object, &["status"], json!({"attached": false}));
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        if context.subresource == "status" {
            copy(old, new, &["spec"]);
            // Unlike for most kinds, `/status` can only change the status and not the metadata.
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

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_driver_name(text(object, &["spec", "attacher"]), "spec.attacher", errors);
        let source = |field| at(object, &["spec", "source", field]);
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        let volume = source("persistentVolumeName").and_then(Value::as_str);
        match (source("inlineVolumeSpec"), volume) {
            (None, None) => errors.required("spec.source", why),
            (Some(_), Some(_)) => errors.forbidden("spec.source", why),
            (None, Some("")) => {
                errors.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName");
            }
            (None, Some(_)) | (Some(_), None) => {}
        }
        if let (Some(inline), None) = (source("inlineVolumeSpec"), volume) {
            validate_inline(inline, errors);
        }
        let node = text(object, &["spec", "nodeName"]);
        for error in names::subdomain(node, false) {
            errors.invalid("spec.nodeName", node, &error);
        }
        for error in ["attachError", "detachError"] {
            let code = at(object, &["status", error, "errorCode"]).and_then(Value::as_i64);
            if let Some(code) = code.filter(|code| *code < 0) {
                let why = "must be between 0 and 2147483647, inclusive";
                errors.invalid(format!("status.{error}.errorCode"), code, why);
            }
        }
        for error in volume.map(|volume| names::subdomain(volume, false)).into_iter().flatten() {
            errors.invalid("spec.source.persistentVolumeName", volume.unwrap_or_default(), &error);
        }
    }

    fn metadata_validation(&self) -> MetadataValidation {
        MetadataValidation::Create
    }

    fn validate_update(&self, new: &Value, old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        self.validate(new, context, errors);
        if at(new, &["spec"]) != at(old, &["spec"]) {
            let spec = at(new, &["spec"]).unwrap_or(&Value::Null);
            errors.invalid_text("spec", &go_diff::attachment_spec(spec), "field is immutable");
        }
    }
}

/// Validates an inline volume: it must be a CSI volume, without the fields of a persistent one.
fn validate_inline(spec: &Value, errors: &mut FieldErrors) {
    const PATH: &str = "spec.source.inlineVolumeSpec";
    const WHY: &str = "in the context of inline volumes";
    let present = |field: &str| {
        at(spec, &[field]).is_some_and(|value| value != "" && value.as_object().is_none_or(|map| !map.is_empty()))
    };
    for field in ["claimRef", "capacity"].into_iter().filter(|field| present(field)) {
        errors.forbidden(format!("{PATH}.{field}"), &format!("may not be specified {WHY}"));
    }
    if at(spec, &["csi"]).is_none() {
        errors.required(format!("{PATH}.csi"), &format!("has to be specified {WHY}"));
    }
    if list(spec, &["accessModes"]).is_empty() {
        errors.required(format!("{PATH}.accessModes"), "");
    }
    if !matches!(text(spec, &["persistentVolumeReclaimPolicy"]), "" | "Retain") {
        errors.forbidden(format!("{PATH}.persistentVolumeReclaimPolicy"), &format!("may only be Retain {WHY}"));
    }
    for field in ["nodeAffinity", "storageClassName"].into_iter().filter(|field| present(field)) {
        errors.forbidden(format!("{PATH}.{field}"), &format!("may not be specified {WHY}"));
    }
    if !matches!(text(spec, &["volumeMode"]), "" | "Filesystem") {
        let why = format!("may not specify volumeMode other than Filesystem {WHY}");
        errors.forbidden(format!("{PATH}.volumeMode"), &why);
    }
}
