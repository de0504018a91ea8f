//! A CSI driver: somebody who makes and attaches volumes (CSIDriver).

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::{FieldError, Meta};

/// A CSI driver, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiDriver {
    /// Who it is.
    pub meta: Meta,
    /// Whether it says how much room there is for new volumes, and wants that to be heeded.
    pub tells_capacity: bool,
    /// Whether pods that use its volumes are kept from nodes that it is not installed on.
    pub must_be_installed: bool,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
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

impl Lean for CsiDriver {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> CsiDriver {
        CsiDriver {
            meta: wire.metadata.meta(&mut flaws),
            tells_capacity: wire.spec.storage_capacity.unwrap_or_default(),
            must_be_installed: wire.spec.prevent_pod_scheduling_if_missing.unwrap_or_default(),
            flaw: flaws.into_flaw(),
        }
    }
}
