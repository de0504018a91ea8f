//! The source of a PersistentVolume: exactly one of these fields of its spec.

use super::csi_node::validate_driver_name;
use crate::field_errors::FieldErrors;
use crate::value::{at, entries, list, map, set_if_empty, text};
use serde_json::{Map, Value, json};

/// The fields with a source, in upstream's order of validation.
pub(crate) const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// The sources that support mount options by annotation.
const MOUNT_OPTIONS_ANNOTATION_SOURCES: [&str; 12] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "iscsi",
    "rbd",
    "quobyte",
    "azureFile",
    "nfs",
    "cephfs",
    "vsphereVolume",
    "azureDisk",
    "portworxVolume",
];

/// The sources in a spec; a valid volume has one.
pub(super) fn sources(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    // A spec has few fields, so each is looked up in the list of sources.
    entries(object, &["spec"]).filter(|(name, _)| SOURCES.contains(name))
}

/// An object with all sources of a spec.
pub(super) fn source_object(object: &Value) -> Value {
    Value::Object(sources(object).map(|(name, source)| (name.to_owned(), source.clone())).collect::<Map<_, _>>())
}

/// Whether mount options can be set by annotation.
pub(super) fn allows_mount_options_annotation(object: &Value) -> bool {
    sources(object).any(|(name, _)| MOUNT_OPTIONS_ANNOTATION_SOURCES.contains(&name))
}

/// Sets the defaults of a source.
pub(super) fn set_defaults(object: &mut Value) {
    const DEFAULTS: [(&str, &[(&str, &str)]); 5] = [
        ("hostPath", &[("type", "")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (source, fields) in DEFAULTS {
        if at(object, &["spec", source]).is_none() {
            continue;
        }
        for (field, value) in fields {
            set_if_empty(object, &["spec", source, field], *value);
        }
        if source == "azureDisk" {
            set_if_empty(object, &["spec", source, "readOnly"], json!(false));
        }
    }
}

/// Validates that there is exactly one source, and the source itself.
pub(super) fn validate(object: &Value, errors: &mut FieldErrors) {
    let mut count = 0;
    let mut sources: Vec<(&str, &Value)> = sources(object).collect();
    sources.sort_by_key(|(name, _)| SOURCES.iter().position(|one| one == name));
    for (name, source) in sources {
        let path = format!("spec.{name}");
        if count > 0 && name != "flexVolume" {
            errors.forbidden(path, "may not specify more than 1 volume type");
            continue;
        }
        count += 1;
        match name {
            "hostPath" => validate_host_path(source, &path, errors),
            "local" => {
                validate_local_path(source, &path, errors);
                if map(object, &["spec", "nodeAffinity"]).is_none() {
                    errors.required("spec.nodeAffinity", "Local volume requires node affinity");
                }
            }
            "nfs" => validate_nfs(source, &path, errors),
            "csi" => validate_csi(source, &path, errors),
            "iscsi" => validate_iscsi(source, &path, errors),
            "fc" => validate_fibre_channel(source, &path, errors),
            "rbd" => validate_present(source, &path, &["image"], errors),
            "cinder" => validate_present(source, &path, &["volumeID"], errors),
            "awsElasticBlockStore" => {
                validate_present(source, &path, &["volumeID"], errors);
                validate_partition(source, &path, errors);
            }
            // Upstream's path for this source is wrong.
            "gcePersistentDisk" => {
                validate_present(source, "spec.persistentDisk", &["pdName"], errors);
                validate_partition(source, "spec.persistentDisk", errors);
            }
            "flexVolume" => validate_present(source, &path, &["driver"], errors),
            "azureDisk" => validate_present(source, &path, &["diskName", "diskURI"], errors),
            "vsphereVolume" => validate_present(source, &path, &["volumePath"], errors),
            "glusterfs" => validate_present(source, &path, &["endpoints", "path"], errors),
            _ => {}
        }
    }
    if count == 0 {
        errors.required("spec", "must specify a volume type");
    }
}

fn validate_present(source: &Value, path: &str, fields: &[&str], errors: &mut FieldErrors) {
    for field in fields.iter().filter(|field| text(source, &[field]).is_empty()) {
        errors.required(format!("{path}.{field}"), "");
    }
}

fn has_parent_steps(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

fn validate_host_path(source: &Value, path: &str, errors: &mut FieldErrors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let on_host = text(source, &["path"]);
    if on_host.is_empty() {
        errors.required(format!("{path}.path"), "");
    } else if has_parent_steps(on_host) {
        errors.invalid(format!("{path}.path"), on_host, "must not contain '..'");
    }
    let kind = text(source, &["type"]);
    if !TYPES.contains(&kind) {
        errors.unsupported(format!("{path}.type"), kind, &TYPES);
    }
}

fn validate_local_path(source: &Value, path: &str, errors: &mut FieldErrors) {
    let on_node = text(source, &["path"]);
    if on_node.is_empty() {
        errors.required(format!("{path}.path"), "");
    } else if has_parent_steps(on_node) {
        errors.invalid(format!("{path}.path"), on_node, "must not contain '..'");
    }
}

fn validate_nfs(source: &Value, path: &str, errors: &mut FieldErrors) {
    validate_present(source, path, &["server", "path"], errors);
    let exported = text(source, &["path"]);
    if !exported.starts_with('/') {
        errors.invalid(format!("{path}.path"), exported, "must be an absolute path");
    }
}

fn validate_partition(source: &Value, path: &str, errors: &mut FieldErrors) {
    let partition = number(source, "partition").unwrap_or(0);
    if !(0..=255).contains(&partition) {
        // Upstream's message excludes 0, but its check does not.
        errors.invalid(format!("{path}.partition"), partition, "must be between 1 and 255, inclusive");
    }
}

fn number(source: &Value, field: &str) -> Option<i64> {
    at(source, &[field]).and_then(Value::as_i64)
}

fn validate_lun(source: &Value, path: &str, errors: &mut FieldErrors) {
    let unit = number(source, "lun").unwrap_or(0);
    if !(0..=255).contains(&unit) {
        errors.invalid(format!("{path}.lun"), unit, "must be between 0 and 255, inclusive");
    }
}

fn validate_fibre_channel(source: &Value, path: &str, errors: &mut FieldErrors) {
    let (targets, ids) = (list(source, &["targetWWNs"]), list(source, &["wwids"]));
    let path_of_targets = format!("{path}.targetWWNs");
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            errors.required(path_of_targets, "must specify either targetWWNs or wwids, but not both");
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            errors.invalid(path_of_targets, targets.to_vec(), why);
        }
        (true, false) | (false, true) => {}
    }
    if targets.is_empty() {
        return;
    }
    match number(source, "lun") {
        None => errors.required(format!("{path}.lun"), "lun is required if targetWWNs is specified"),
        Some(_) => validate_lun(source, path, errors),
    }
}

fn validate_iscsi(source: &Value, path: &str, errors: &mut FieldErrors) {
    validate_present(source, path, &["targetPortal"], errors);
    let name = text(source, &["iqn"]);
    if name.is_empty() {
        errors.required(format!("{path}.iqn"), "");
    } else if !is_iscsi_name(name) {
        errors.invalid(format!("{path}.iqn"), name, "must be valid format");
    }
    validate_lun(source, path, errors);
    let secret = at(source, &["secretRef"]);
    let authenticates = |field| at(source, &[field]) == Some(&Value::Bool(true));
    match secret {
        None if authenticates("chapAuthDiscovery") || authenticates("chapAuthSession") => {
            errors.required(format!("{path}.secretRef"), "");
        }
        None => {}
        Some(secret) => validate_present(secret, &format!("{path}.secretRef"), &["name"], errors),
    }
    if let Some(initiator) = at(source, &["initiatorName"]).and_then(Value::as_str)
        && !is_iscsi_name(initiator)
    {
        errors.invalid(format!("{path}.initiatorname"), initiator, "must be valid format");
    }
}

/// `iqn.2001-04.com.example:disk`, or `eui.` with 16 letters and digits, or `naa.` with 32.
fn is_iscsi_name(name: &str) -> bool {
    let of_length = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let Some((kind, rest)) = name.split_at_checked(4) else { return false };
    match kind {
        "iqn." => {
            let Some((date, rest)) = rest.split_at_checked(8) else { return false };
            let fits = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
            let in_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            let Some((host, disk)) = rest.split_once(':') else { return false };
            date.bytes().zip(b"0000-00.").all(fits)
                && !host.is_empty()
                && host.bytes().all(in_host)
                && !disk.is_empty()
                && !disk.contains(|letter: char| ",;*&$|".contains(letter) || letter.is_ascii_whitespace())
        }
        "eui." => of_length(rest, 16),
        "naa." => of_length(rest, 32),
        _ => false,
    }
}

fn validate_csi(source: &Value, path: &str, errors: &mut FieldErrors) {
    validate_driver_name(text(source, &["driver"]), &format!("{path}.driver"), errors);
    validate_present(source, path, &["volumeHandle"], errors);
    for secret in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        if let Some(reference) = at(source, &[secret]) {
            validate_present(reference, &format!("{path}.{secret}"), &["name", "namespace"], errors);
        }
    }
}

/// Warnings about sources that no longer work.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    const GONE: [(&str, &str); 6] = [
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let named = |name: &str| if name == "storageos" { "storageOS".to_owned() } else { name.to_owned() };
    let gone = sources(object).filter_map(|(name, _)| GONE.iter().find(|(gone, _)| *gone == name));
    gone.map(|(name, why)| format!("spec.{}: {why}", named(name))).collect()
}
