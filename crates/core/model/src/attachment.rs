//! VolumeAttachment: a volume that is attached to a node or is to be attached.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::{FieldError, Meta, Name};

/// The fields of a VolumeAttachment that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Its identity and version.
    pub meta: Meta,
    /// The CSI driver that attaches.
    pub attacher: Name,
    /// The node.
    pub node: Name,
    /// The PersistentVolume; `None` for an inline volume.
    pub volume: Option<Name>,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
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

impl FromWire for Attachment {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Attachment {
        Attachment {
            meta: wire.metadata.meta(&mut errors),
            attacher: wire.spec.attacher.unwrap_or_default(),
            node: wire.spec.node_name.unwrap_or_default(),
            volume: wire.spec.source.persistent_volume_name,
            field_error: errors.into_error(),
        }
    }
}
