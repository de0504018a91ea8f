//! A volume that is attached to a node, or is to be (VolumeAttachment).

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::{FieldError, Meta, Name};

/// An attachment, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Who it is.
    pub meta: Meta,
    /// The CSI driver that attaches.
    pub attacher: Name,
    /// The node that is attached to.
    pub node: Name,
    /// The volume that is attached, if it is one.
    pub volume: Option<Name>,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Attachment {
    /// Decodes an attachment. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Attachment, FieldError> {
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
    attacher: Option<Name>,
    node_name: Option<Name>,
    source: WireSource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSource {
    persistent_volume_name: Option<Name>,
}

impl Lean for Attachment {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> Attachment {
        Attachment {
            meta: wire.metadata.meta(&mut flaws),
            attacher: wire.spec.attacher.unwrap_or_default(),
            node: wire.spec.node_name.unwrap_or_default(),
            volume: wire.spec.source.persistent_volume_name,
            flaw: flaws.into_flaw(),
        }
    }
}
