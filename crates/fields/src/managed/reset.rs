//! Fields that a write cannot change, because the kind puts them back: nobody comes to own them that way.

use crate::{FieldSet, Schema};

/// The fields that are put back when this kind is written through this subresource (empty for the object itself).
pub(super) fn fields(schema: &Schema, subresource: &str) -> FieldSet {
    let paths: &[&[&str]] = match (schema.group, schema.kind, subresource) {
        ("", "Pod", "status") => {
            &[&["f:spec"], &["f:metadata", "f:deletionTimestamp"], &["f:metadata", "f:ownerReferences"]]
        }
        ("storage.k8s.io", "VolumeAttachment", "status") => &[&["f:metadata"], &["f:spec"]],
        ("", "Node" | "Namespace" | "PersistentVolume" | "PersistentVolumeClaim", "status") => &[&["f:spec"]],
        ("", "Node" | "Namespace" | "Pod" | "PersistentVolume" | "PersistentVolumeClaim", _) => &[&["f:status"]],
        ("storage.k8s.io", "VolumeAttachment", _) => &[&["f:status"]],
        _ => &[],
    };
    let mut set = FieldSet::default();
    paths.iter().for_each(|path| set.insert(path));
    set
}
