//! Objects and patches as bytes: what decoding and patching accept can be stored and read again,
//! and everything else is an error, not a panic.

use bindery_fields::patch::{self, PatchKind, Validation};
use bindery_fields::{Schema, Strictness, canonical, decode, yaml_to_json};
use serde_json::Value;

const KINDS: [(&str, &str); 6] = [
    ("", "ConfigMap"),
    ("", "Pod"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIStorageCapacity"),
];
const PATCHES: [PatchKind; 3] = [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic];
/// What a patch may add to an object beyond its own size: the copies of a JSON patch.
const COPIED_BYTES_MAX: usize = 3 << 20;

/// The input: a line with an object, and the rest is a patch for it.
pub fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (object, patch) = bytes.split_at(end);
    let _ = yaml_to_json(bytes);
    for (group, kind) in KINDS {
        let schema = Schema::of(group, "v1", kind).expect("it is served");
        let _ = decode(schema, object, Strictness::Report);
        let Ok(live) = decode(schema, object, Strictness::Ignore) else { continue };
        reads_again(schema, &live.value);
        for kind in PATCHES {
            for validation in [Validation::Ignore, Validation::Warn, Validation::Strict] {
                let Ok(patched) = patch::patch(schema, &live.value, kind, patch, validation) else { continue };
                let size = reads_again(schema, &patched.value);
                let least = live.value.to_string().len() + schema_size(schema);
                // Escapes can take six bytes for one.
                assert!(size <= least + 6 * patch.len() + COPIED_BYTES_MAX, "{kind:?} made {size} bytes");
            }
        }
    }
}

/// The size of the fields that are always printed.
fn schema_size(schema: &Schema) -> usize {
    canonical(schema, Value::Null, Strictness::Ignore).map_or(0, |empty| empty.value.to_string().len()) + 1024
}

/// Checks that a value can be stored: its text is decoded as the same value. Returns its size.
fn reads_again(schema: &Schema, value: &Value) -> usize {
    let text = value.to_string();
    let again = decode(schema, text.as_bytes(), Strictness::Report);
    let again = again.unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!(again.value, *value, "it was read differently");
    text.len()
}
