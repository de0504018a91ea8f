//! What CSI drivers can do on a node (CSINode, which has the node's name).

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::{Annotation, FieldError, Meta, Name};

/// A driver that is installed on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeDriver {
    /// The driver.
    pub name: Name,
    /// How many of its volumes the node can have at once, if that is limited.
    pub volumes_max: Option<i64>,
    /// The labels of nodes that tell where its volumes can be reached from.
    pub topology_keys: Box<[Name]>,
}

/// What CSI drivers can do on a node, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiNode {
    /// Who it is: it has the node's name.
    pub meta: Meta,
    /// The in-tree plugins whose work CSI drivers have taken over on the node.
    pub migrated: Box<[Name]>,
    /// The drivers that are installed on the node.
    pub drivers: Box<[NodeDriver]>,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl CsiNode {
    /// Decodes one. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<CsiNode, FieldError> {
        decode(json)
    }

    /// Whether a CSI driver has taken over from an in-tree plugin on the node.
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

impl Lean for CsiNode {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> CsiNode {
        let driver = |wire: WireDriver| NodeDriver {
            name: wire.name,
            volumes_max: wire.allocatable.and_then(|allocatable| allocatable.count),
            topology_keys: wire.topology_keys.unwrap_or_default(),
        };
        let plugins = wire.metadata.annotations.get(Annotation::MigratedPlugins);
        let migrated = plugins.into_iter().flat_map(|list| list.split(',')).filter(|plugin| !plugin.is_empty());
        let migrated = migrated.map(Name::from).collect();
        CsiNode {
            meta: wire.metadata.meta(&mut flaws),
            migrated,
            drivers: wire.spec.drivers.unwrap_or_default().into_iter().map(driver).collect(),
            flaw: flaws.into_flaw(),
        }
    }
}
