//! CSINode: the CSI drivers that are installed on the node with the same name.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::{Annotation, FieldError, Meta, Name};

/// A driver that is installed on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeDriver {
    /// The name of the driver.
    pub name: Name,
    /// The maximum number of its volumes that can be attached to the node, if limited.
    pub volumes_max: Option<i64>,
    /// The node labels that define its topology.
    pub topology_keys: Box<[Name]>,
}

/// The fields of a CSINode that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiNode {
    /// Its identity and version. Its name is that of the node.
    pub meta: Meta,
    /// The in-tree plugins that are migrated to CSI on the node.
    pub migrated: Box<[Name]>,
    /// The drivers that are installed on the node.
    pub drivers: Box<[NodeDriver]>,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl CsiNode {
    /// Decodes a CSINode. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<CsiNode, FieldError> {
        decode(json)
    }

    /// Whether an in-tree plugin is migrated to CSI on the node.
    pub fn has_migrated(&self, plugin: &str) -> bool {
        self.migrated.iter().any(|migrated| migrated == plugin)
    }

    /// A driver, if it is installed on the node.
    pub fn driver(&self, name: &str) -> Option<&NodeDriver> {
        self.drivers.iter().find(|driver| driver.name == name)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSpec {
    drivers: Option<Vec<WireDriver>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireDriver {
    name: Name,
    allocatable: Option<WireAllocatable>,
    topology_keys: Option<Box<[Name]>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAllocatable {
    count: Option<i64>,
}

impl FromWire for CsiNode {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> CsiNode {
        let driver = |wire: WireDriver| NodeDriver {
            name: wire.name,
            volumes_max: wire.allocatable.and_then(|allocatable| allocatable.count),
            topology_keys: wire.topology_keys.unwrap_or_default(),
        };
        let plugins = wire.metadata.annotations.get(Annotation::MigratedPlugins);
        let migrated = plugins.into_iter().flat_map(|list| list.split(',')).filter(|plugin| !plugin.is_empty());
        let migrated = migrated.map(Name::from).collect();
        CsiNode {
            meta: wire.metadata.meta(&mut errors),
            migrated,
            drivers: wire.spec.drivers.unwrap_or_default().into_iter().map(driver).collect(),
            field_error: errors.into_error(),
        }
    }
}
