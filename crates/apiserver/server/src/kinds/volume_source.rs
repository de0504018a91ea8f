//! Where a persistent volume's bytes are: the one field of its spec that says so.

use super::csi_node::check_driver_name;
use crate::invalid::FieldErrors;
use crate::value::{at, entries, list, map, set_default, text};
use serde_json::{Map, Value, json};

/// The fields that name a source, in the order in which upstream looks at them.
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

/// The sources that were mounted with options before there was a field for them.
const OLD_MOUNT_OPTIONS: [&str; 12] = [
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

/// The sources that a spec names; for sound volumes it is one.
pub(super) fn found(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    // A spec has few fields, so that each is looked up among the sources, not the other way round.
    entries(object, &["spec"]).filter(|(name, _)| SOURCES.contains(name))
}

/// Sources, as the spec names them.
pub(super) fn of(object: &Value) -> Value {
    Value::Object(found(object).map(|(name, source)| (name.to_owned(), source.clone())).collect::<Map<_, _>>())
}

/// Whether mount options may be given by annotation.
pub(super) fn takes_old_mount_options(object: &Value) -> bool {
    found(object).any(|(name, _)| OLD_MOUNT_OPTIONS.contains(&name))
}

/// Fills in what was left out of a source.
pub(super) fn fill_in(object: &mut Value) {
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
            set_default(object, &["spec", source, field], *value);
        }
        if source == "azureDisk" {
            set_default(object, &["spec", source, "readOnly"], json!(false));
        }
    }
}

/// Exactly one source, and one that makes sense.
pub(super) fn check(object: &Value, flaws: &mut FieldErrors) {
    let mut count = 0;
    let mut sources: Vec<(&str, &Value)> = found(object).collect();
    sources.sort_by_key(|(name, _)| SOURCES.iter().position(|one| one == name));
    for (name, source) in sources {
        let path = format!("spec.{name}");
        if count > 0 && name != "flexVolume" {
            flaws.forbidden(path, "may not specify more than 1 volume type");
            continue;
        }
        count += 1;
        match name {
            "hostPath" => check_host_path(source, &path, flaws),
            "local" => {
                check_local_path(source, &path, flaws);
                if map(object, &["spec", "nodeAffinity"]).is_none() {
                    flaws.required("spec.nodeAffinity", "Local volume requires node affinity");
                }
            }
            "nfs" => check_nfs(source, &path, flaws),
            "csi" => check_csi(source, &path, flaws),
            "iscsi" => check_iscsi(source, &path, flaws),
            "fc" => check_fibre_channel(source, &path, flaws),
            "rbd" => check_present(source, &path, &["image"], flaws),
            "cinder" => check_present(source, &path, &["volumeID"], flaws),
            "awsElasticBlockStore" => {
                check_present(source, &path, &["volumeID"], flaws);
                check_partition(source, &path, flaws);
            }
            // Upstream tells of this one by a name that it does not have.
            "gcePersistentDisk" => {
                check_present(source, "spec.persistentDisk", &["pdName"], flaws);
                check_partition(source, "spec.persistentDisk", flaws);
            }
            "flexVolume" => check_present(source, &path, &["driver"], flaws),
            "azureDisk" => check_present(source, &path, &["diskName", "diskURI"], flaws),
            "vsphereVolume" => check_present(source, &path, &["volumePath"], flaws),
            "glusterfs" => check_present(source, &path, &["endpoints", "path"], flaws),
            _ => {}
        }
    }
    if count == 0 {
        flaws.required("spec", "must specify a volume type");
    }
}

fn check_present(source: &Value, path: &str, fields: &[&str], flaws: &mut FieldErrors) {
    for field in fields.iter().filter(|field| text(source, &[field]).is_empty()) {
        flaws.required(format!("{path}.{field}"), "");
    }
}

fn has_steps_up(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

fn check_host_path(source: &Value, path: &str, flaws: &mut FieldErrors) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let on_host = text(source, &["path"]);
    if on_host.is_empty() {
        flaws.required(format!("{path}.path"), "");
    } else if has_steps_up(on_host) {
        flaws.invalid(format!("{path}.path"), on_host, "must not contain '..'");
    }
    let kind = text(source, &["type"]);
    if !TYPES.contains(&kind) {
        flaws.unsupported(format!("{path}.type"), kind, &TYPES);
    }
}

fn check_local_path(source: &Value, path: &str, flaws: &mut FieldErrors) {
    let on_node = text(source, &["path"]);
    if on_node.is_empty() {
        flaws.required(format!("{path}.path"), "");
    } else if has_steps_up(on_node) {
        flaws.invalid(format!("{path}.path"), on_node, "must not contain '..'");
    }
}

fn check_nfs(source: &Value, path: &str, flaws: &mut FieldErrors) {
    check_present(source, path, &["server", "path"], flaws);
    let exported = text(source, &["path"]);
    if !exported.starts_with('/') {
        flaws.invalid(format!("{path}.path"), exported, "must be an absolute path");
    }
}

fn check_partition(source: &Value, path: &str, flaws: &mut FieldErrors) {
    let partition = number(source, "partition").unwrap_or(0);
    if !(0..=255).contains(&partition) {
        // Upstream's words leave 0 out, its test does not.
        flaws.invalid(format!("{path}.partition"), partition, "must be between 1 and 255, inclusive");
    }
}

fn number(source: &Value, field: &str) -> Option<i64> {
    at(source, &[field]).and_then(Value::as_i64)
}

fn check_unit(source: &Value, path: &str, flaws: &mut FieldErrors) {
    let unit = number(source, "lun").unwrap_or(0);
    if !(0..=255).contains(&unit) {
        flaws.invalid(format!("{path}.lun"), unit, "must be between 0 and 255, inclusive");
    }
}

fn check_fibre_channel(source: &Value, path: &str, flaws: &mut FieldErrors) {
    let (targets, ids) = (list(source, &["targetWWNs"]), list(source, &["wwids"]));
    let path_of_targets = format!("{path}.targetWWNs");
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            flaws.required(path_of_targets, "must specify either targetWWNs or wwids, but not both");
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            flaws.invalid(path_of_targets, targets.to_vec(), why);
        }
        (true, false) | (false, true) => {}
    }
    if targets.is_empty() {
        return;
    }
    match number(source, "lun") {
        None => flaws.required(format!("{path}.lun"), "lun is required if targetWWNs is specified"),
        Some(_) => check_unit(source, path, flaws),
    }
}

fn check_iscsi(source: &Value, path: &str, flaws: &mut FieldErrors) {
    check_present(source, path, &["targetPortal"], flaws);
    let name = text(source, &["iqn"]);
    if name.is_empty() {
        flaws.required(format!("{path}.iqn"), "");
    } else if !is_iscsi_name(name) {
        flaws.invalid(format!("{path}.iqn"), name, "must be valid format");
    }
    check_unit(source, path, flaws);
    let secret = at(source, &["secretRef"]);
    let authenticates = |field| at(source, &[field]) == Some(&Value::Bool(true));
    match secret {
        None if authenticates("chapAuthDiscovery") || authenticates("chapAuthSession") => {
            flaws.required(format!("{path}.secretRef"), "");
        }
        None => {}
        Some(secret) => check_present(secret, &format!("{path}.secretRef"), &["name"], flaws),
    }
    if let Some(initiator) = at(source, &["initiatorName"]).and_then(Value::as_str)
        && !is_iscsi_name(initiator)
    {
        flaws.invalid(format!("{path}.initiatorname"), initiator, "must be valid format");
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

fn check_csi(source: &Value, path: &str, flaws: &mut FieldErrors) {
    check_driver_name(text(source, &["driver"]), &format!("{path}.driver"), flaws);
    check_present(source, path, &["volumeHandle"], flaws);
    for secret in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        if let Some(reference) = at(source, &[secret]) {
            check_present(reference, &format!("{path}.{secret}"), &["name", "namespace"], flaws);
        }
    }
}

/// Sources that no longer work.
pub(super) fn warn(object: &Value) -> Vec<String> {
    const GONE: [(&str, &str); 6] = [
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let named = |name: &str| if name == "storageos" { "storageOS".to_owned() } else { name.to_owned() };
    let gone = found(object).filter_map(|(name, _)| GONE.iter().find(|(gone, _)| *gone == name));
    gone.map(|(name, why)| format!("spec.{}: {why}", named(name))).collect()
}
