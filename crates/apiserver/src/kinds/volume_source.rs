//! Where a persistent volume's bytes are: the one field of its spec that says so.

use super::csi_node::check_driver_name;
use crate::invalid::Flaws;
use crate::value::{at, entries, map, set_default, text};
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
pub(super) fn check(object: &Value, flaws: &mut Flaws) {
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
            "iscsi" => check_present(source, &path, &["targetPortal", "iqn"], flaws),
            "rbd" => check_present(source, &path, &["image"], flaws),
            "cinder" | "awsElasticBlockStore" => check_present(source, &path, &["volumeID"], flaws),
            "gcePersistentDisk" => check_present(source, &path, &["pdName"], flaws),
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

fn check_present(source: &Value, path: &str, fields: &[&str], flaws: &mut Flaws) {
    for field in fields.iter().filter(|field| text(source, &[field]).is_empty()) {
        flaws.required(format!("{path}.{field}"), "");
    }
}

fn has_steps_up(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

fn check_host_path(source: &Value, path: &str, flaws: &mut Flaws) {
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

fn check_local_path(source: &Value, path: &str, flaws: &mut Flaws) {
    let on_node = text(source, &["path"]);
    if on_node.is_empty() {
        flaws.required(format!("{path}.path"), "");
    } else if has_steps_up(on_node) {
        flaws.invalid(format!("{path}.path"), on_node, "must not contain '..'");
    }
}

fn check_nfs(source: &Value, path: &str, flaws: &mut Flaws) {
    check_present(source, path, &["server", "path"], flaws);
    let exported = text(source, &["path"]);
    if !exported.is_empty() && !exported.starts_with('/') {
        flaws.invalid(format!("{path}.path"), exported, "must be an absolute path");
    }
}

fn check_csi(source: &Value, path: &str, flaws: &mut Flaws) {
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
