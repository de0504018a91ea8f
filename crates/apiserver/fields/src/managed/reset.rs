//! Fields that a write through a given path cannot change: the kind resets them, so the writer does
//! not become their owner.

use std::sync::LazyLock;

use crate::{FieldSet, Schema};

fn set(paths: &[&[&str]]) -> FieldSet {
    let mut set = FieldSet::default();
    paths.iter().for_each(|path| set.insert(path));
    set
}

static NONE: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| set(&[&["f:status"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| set(&[&["f:spec"]]));
static ALL_BUT_STATUS: LazyLock<FieldSet> = LazyLock::new(|| set(&[&["f:metadata"], &["f:spec"]]));
static OF_POD: LazyLock<FieldSet> =
    LazyLock::new(|| set(&[&["f:spec"], &["f:metadata", "f:deletionTimestamp"], &["f:metadata", "f:ownerReferences"]]));

/// The fields that the kind resets when it is written through this subresource (empty for the
/// object itself).
pub(super) fn fields(schema: &Schema, subresource: &str) -> &'static FieldSet {
    match (schema.group, schema.kind, subresource) {
        ("", "Pod", "status") => &OF_POD,
        ("storage.k8s.io", "VolumeAttachment", "status") => &ALL_BUT_STATUS,
        ("", "Node" | "Namespace" | "PersistentVolume" | "PersistentVolumeClaim", "status") => &SPEC,
        ("", "Node" | "Namespace" | "Pod" | "PersistentVolume" | "PersistentVolumeClaim", _) => &STATUS,
        ("storage.k8s.io", "VolumeAttachment", _) => &STATUS,
        _ => &NONE,
    }
}
