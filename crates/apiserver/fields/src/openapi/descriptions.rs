//! What fields are for, in the words that the client library carries. Fields that are newer than the version it is built for have none.

use std::sync::LazyLock;

use k8s_openapi::api::{coordination, core, events, storage};
use k8s_openapi::apimachinery::pkg::apis::meta;
use k8s_openapi::schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// Schemas by their public names.
static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::default();
    macro_rules! take {
        ($($kind:ty),* $(,)?) => { $( generator.subschema_for::<$kind>(); )* };
    }
    take!(
        core::v1::ConfigMap,
        core::v1::Event,
        core::v1::Namespace,
        core::v1::Node,
        core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim,
        core::v1::Pod,
        core::v1::Secret,
        core::v1::ServiceAccount,
        coordination::v1::Lease,
        events::v1::Event,
        storage::v1::CSIDriver,
        storage::v1::CSINode,
        storage::v1::CSIStorageCapacity,
        storage::v1::StorageClass,
        storage::v1::VolumeAttachment,
        storage::v1beta1::VolumeAttributesClass,
        meta::v1::DeleteOptions,
        meta::v1::ListMeta,
        meta::v1::Status,
        meta::v1::MicroTime,
    );
    generator.take_definitions(false)
});

fn schema(name: &str) -> Option<&'static Value> {
    SCHEMAS.get(name).or_else(|| {
        // The one kind whose v1 is newer than the client library.
        let older = name.replace("storage.v1.VolumeAttributesClass", "storage.v1beta1.VolumeAttributesClass");
        SCHEMAS.get(&older)
    })
}

pub(super) fn of_type(name: &str) -> Option<&'static str> {
    schema(name)?.get("description")?.as_str()
}

pub(super) fn of_field(of: &str, field: &str) -> Option<&'static str> {
    schema(of)?.get("properties")?.get(field)?.get("description")?.as_str()
}
