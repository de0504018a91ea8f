//! VolumeAttributesClass: mutable attributes of volumes.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::{FieldError, Meta, Name};

/// The fields of a VolumeAttributesClass that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttributesClass {
    /// Its identity and version.
    pub meta: Meta,
    /// Its finalizers.
    pub finalizers: Box<[Name]>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The CSI driver that interprets the attributes.
    pub driver: Name,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl AttributesClass {
    /// Decodes an attributes class. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<AttributesClass, FieldError> {
        decode(json)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    driver_name: Option<Name>,
}

impl FromWire for AttributesClass {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut errors: FieldErrors) -> AttributesClass {
        AttributesClass {
            meta: wire.metadata.meta(&mut errors),
            finalizers: wire.metadata.finalizers(),
            deleting: wire.metadata.is_deleting(),
            driver: wire.driver_name.unwrap_or_default(),
            field_error: errors.into_error(),
        }
    }
}
