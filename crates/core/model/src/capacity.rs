//! CSIStorageCapacity: how much capacity there is for new volumes of a class, and for which nodes.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, WireQuantity, decode};
use crate::selector::WireSelector;
use crate::{FieldError, Labels, Meta, Name, Quantity, RequiredLabels, Selector};

/// The fields of a CSIStorageCapacity that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Its identity and version.
    pub meta: Meta,
    /// The StorageClass that it applies to.
    pub class: Name,
    /// The labels of the nodes that it applies to: no node when absent; an error when invalid.
    pub nodes: Option<Result<Selector, String>>,
    /// The total capacity.
    pub total: Option<Quantity>,
    /// The maximum size of one volume.
    pub volume_size_max: Option<Quantity>,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl Capacity {
    /// Decodes a CSIStorageCapacity. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Capacity, FieldError> {
        decode(json)
    }

    /// The maximum size of a new volume: the limit for one volume, else the total capacity.
    pub fn limit(&self) -> Option<&Quantity> {
        self.volume_size_max.as_ref().or(self.total.as_ref())
    }

    /// Whether it is sufficient for a volume of that size.
    pub fn fits(&self, size: &Quantity) -> bool {
        self.limit().is_some_and(|limit| limit.units() >= size.units())
    }

    /// Whether it applies to a node with these labels.
    pub fn is_for(&self, labels: &Labels) -> bool {
        matches!(&self.nodes, Some(Ok(selector)) if selector.matches(labels))
    }

    /// The labels of which a node must have one for this to apply to it.
    pub fn required_labels(&self) -> RequiredLabels<'_> {
        match &self.nodes {
            Some(Ok(selector)) => RequiredLabels::of_selector(selector),
            Some(Err(_)) | None => RequiredLabels::OneOf(Vec::new()),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    storage_class_name: Option<Name>,
    node_topology: Option<WireSelector>,
    capacity: Option<WireQuantity>,
    maximum_volume_size: Option<WireQuantity>,
}

impl FromWire for Capacity {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Capacity {
        Capacity {
            meta: wire.metadata.meta(&mut errors),
            class: wire.storage_class_name.unwrap_or_default(),
            nodes: wire.node_topology.map(WireSelector::parse),
            total: errors.quantity("capacity", wire.capacity),
            volume_size_max: errors.quantity("maximumVolumeSize", wire.maximum_volume_size),
            field_error: errors.into_error(),
        }
    }
}
