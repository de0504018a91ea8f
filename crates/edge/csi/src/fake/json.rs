//! Requests as JSON with the field names of `csi.proto`. Unset fields are omitted.

use serde_json::{Map, Value, json};

use crate::proto::volume_capability::AccessType;
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::volume_content_source::Type;
use crate::proto::{CreateVolumeRequest, DeleteVolumeRequest, Topology, VolumeCapability, VolumeContentSource};

pub(super) fn create(request: &CreateVolumeRequest) -> Value {
    let mut out = Map::new();
    let mut put = |field: &str, value: Value| {
        if !is_unset(&value) {
            out.insert(field.to_owned(), value);
        }
    };
    put("name", request.name.clone().into());
    if let Some(range) = request.capacity_range {
        put(
            "capacity_range",
            set([("required_bytes", number(range.required_bytes)), ("limit_bytes", number(range.limit_bytes))]),
        );
    }
    put("volume_capabilities", request.volume_capabilities.iter().map(capability).collect());
    put("parameters", json!(request.parameters));
    put("secrets", json!(request.secrets));
    put("mutable_parameters", json!(request.mutable_parameters));
    if let Some(source) = &request.volume_content_source {
        put("volume_content_source", content(source));
    }
    if let Some(wanted) = &request.accessibility_requirements {
        let topologies = |topologies: &[Topology]| topologies.iter().map(topology).collect::<Value>();
        let pair = [("requisite", topologies(&wanted.requisite)), ("preferred", topologies(&wanted.preferred))];
        put("accessibility_requirements", set(pair));
    }
    out.into()
}

pub(super) fn delete(request: &DeleteVolumeRequest) -> Value {
    set([("volume_id", request.volume_id.clone().into()), ("secrets", json!(request.secrets))])
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The fields that are set.
fn set<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().filter(|(_, value)| !is_unset(value)).map(|(field, value)| (field.to_owned(), value)).collect()
}

/// 64-bit numbers are strings in protobuf's JSON; zero is unset.
fn number(number: i64) -> Value {
    if number == 0 { Value::Null } else { number.to_string().into() }
}

fn capability(capability: &VolumeCapability) -> Value {
    let mut out = Map::new();
    match &capability.access_type {
        Some(AccessType::Block(_)) => {
            out.insert("block".into(), json!({}));
        }
        Some(AccessType::Mount(mount)) => {
            let fields = [("fs_type", mount.fs_type.clone().into()), ("mount_flags", mount.mount_flags.clone().into())];
            out.insert("mount".into(), set(fields));
        }
        None => {}
    }
    if let Some(mode) = capability.access_mode {
        let name = Mode::try_from(mode.mode).map_or("", |mode| mode.as_str_name());
        out.insert("access_mode".into(), json!({"mode": name}));
    }
    out.into()
}

fn content(source: &VolumeContentSource) -> Value {
    match &source.r#type {
        Some(Type::Snapshot(snapshot)) => json!({"snapshot": {"snapshot_id": snapshot.snapshot_id}}),
        Some(Type::Volume(volume)) => json!({"volume": {"volume_id": volume.volume_id}}),
        None => Value::Null,
    }
}

fn topology(topology: &Topology) -> Value {
    json!({"segments": topology.segments})
}
