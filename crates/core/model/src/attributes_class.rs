//! An attributes class: qualities of a volume that can change while it is in use (VolumeAttributesClass).

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::{FieldError, Meta, Name};

/// An attributes class, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttributesClass {
    /// Who it is.
    pub meta: Meta,
    /// What holds it back from being deleted.
    pub finalizers: Box<[Name]>,
    /// Whether somebody deleted it.
    pub deleting: bool,
    /// The CSI driver that knows these attributes.
    pub driver: Name,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
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

impl Lean for AttributesClass {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut flaws: FieldErrors) -> AttributesClass {
        AttributesClass {
            meta: wire.metadata.meta(&mut flaws),
            finalizers: wire.metadata.finalizers(),
            deleting: wire.metadata.is_deleting(),
            driver: wire.driver_name.unwrap_or_default(),
            flaw: flaws.into_flaw(),
        }
    }
}
