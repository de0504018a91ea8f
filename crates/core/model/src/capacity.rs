//! How much room there is for new volumes of a class, and where (CSIStorageCapacity).

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, WireQuantity, decode};
use crate::selector::WireSelector;
use crate::{Anchors, FieldError, Labels, Meta, Name, Quantity, Selector};

/// How much room a driver says there is, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Who it is.
    pub meta: Meta,
    /// For volumes of which class.
    pub class: Name,
    /// For which nodes, by their labels: none when nothing is said; why that cannot be known, when it makes no sense.
    pub nodes: Option<Result<Selector, String>>,
    /// How much room there is in all.
    pub room: Option<Quantity>,
    /// How large one volume can be.
    pub largest: Option<Quantity>,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Capacity {
    /// Decodes one. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Capacity, FieldError> {
        decode(json)
    }

    /// How large a new volume can be: as is said of one volume, else as much as there is.
    pub fn limit(&self) -> Option<&Quantity> {
        self.largest.as_ref().or(self.room.as_ref())
    }

    /// Whether a volume of that size fits in.
    pub fn holds(&self, size: &Quantity) -> bool {
        self.limit().is_some_and(|limit| limit.units() >= size.units())
    }

    /// Whether it is for a node with these labels.
    pub fn is_for(&self, labels: &Labels) -> bool {
        matches!(&self.nodes, Some(Ok(selector)) if selector.matches(labels))
    }

    /// Where it can be looked up.
    pub fn anchors(&self) -> Anchors<'_> {
        match &self.nodes {
            Some(Ok(selector)) => Anchors::of_selector(selector),
            Some(Err(_)) | None => Anchors::At(Vec::new()),
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

impl Lean for Capacity {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> Capacity {
        Capacity {
            meta: wire.metadata.meta(&mut flaws),
            class: wire.storage_class_name.unwrap_or_default(),
            nodes: wire.node_topology.map(WireSelector::parse),
            room: flaws.quantity("capacity", wire.capacity),
            largest: flaws.quantity("maximumVolumeSize", wire.maximum_volume_size),
            flaw: flaws.into_flaw(),
        }
    }
}
