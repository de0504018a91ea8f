//! A node: a machine that pods run on.

use serde::Deserialize;

use crate::decode::{Flaws, Lean, WireMeta, decode};
use crate::{Flaw, Labels, Meta};

/// A node, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Who it is.
    pub meta: Meta,
    /// Where it stands, and what it is.
    pub labels: Labels,
    /// Whether new pods are kept away from it.
    pub unschedulable: bool,
    /// What could not be understood of it.
    pub flaw: Option<Box<Flaw>>,
}

impl Node {
    /// Decodes a node. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Node, Flaw> {
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
#[serde(default)]
struct WireSpec {
    unschedulable: Option<bool>,
}

impl Lean for Node {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: Flaws) -> Node {
        Node {
            meta: wire.metadata.meta(&mut flaws),
            labels: wire.metadata.labels.0,
            unschedulable: wire.spec.unschedulable.unwrap_or_default(),
            flaw: flaws.into_flaw(),
        }
    }
}
