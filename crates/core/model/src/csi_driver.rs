//! CSIDriver: how a CSI driver takes part in scheduling.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::{FieldError, Meta};

/// The fields of a CSIDriver that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiDriver {
    /// Its identity and version.
    pub meta: Meta,
    /// Whether it publishes CSIStorageCapacity objects that scheduling must respect.
    pub reports_capacity: bool,
    /// Whether pods that use its volumes must not run on nodes where it is not installed.
    pub must_be_installed: bool,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl CsiDriver {
    /// Decodes a driver. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<CsiDriver, FieldError> {
        decode(json)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSpec {
    storage_capacity: Option<bool>,
    prevent_pod_scheduling_if_missing: Option<bool>,
}

impl FromWire for CsiDriver {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> CsiDriver {
        CsiDriver {
            meta: wire.metadata.meta(&mut errors),
            reports_capacity: wire.spec.storage_capacity.unwrap_or_default(),
            must_be_installed: wire.spec.prevent_pod_scheduling_if_missing.unwrap_or_default(),
            field_error: errors.into_error(),
        }
    }
}
