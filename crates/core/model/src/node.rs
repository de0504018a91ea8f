//! Nodes.

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::resources::WireResourceList;
use crate::{Allocatable, FieldError, Labels, Meta, Name};

/// The effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    #[default]
    NoSchedule,
    /// They are scheduled to other nodes if possible.
    PreferNoSchedule,
    /// They are not scheduled to the node, and are evicted from it.
    NoExecute,
}

impl TaintEffect {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
    }

    /// The effect with that name in the API.
    pub fn parse(text: &str) -> Option<TaintEffect> {
        let all = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
        all.into_iter().find(|effect| effect.as_str() == text)
    }
}

/// A taint of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: Name,
    /// Its value.
    pub value: Name,
    /// Its effect.
    pub effect: TaintEffect,
}

/// The fields of a Node that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its identity and version.
    pub meta: Meta,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Its taints.
    pub taints: Box<[Taint]>,
    /// The resources available to pods.
    pub allocatable: Allocatable,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl Node {
    /// Decodes a node. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Node, FieldError> {
        decode(json)
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.meta.name
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
    status: WireStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSpec {
    unschedulable: Option<bool>,
    taints: Option<Vec<WireTaint>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTaint {
    key: Name,
    value: Option<Name>,
    effect: Option<Name>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireStatus {
    allocatable: Option<WireResourceList>,
}

impl FromWire for Node {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut errors: FieldErrors) -> Node {
        let mut taint = |wire: WireTaint| Taint {
            key: wire.key,
            value: wire.value.unwrap_or_default(),
            effect: errors.enumeration("spec.taints.effect", wire.effect, TaintEffect::parse),
        };
        Node {
            taints: wire.spec.taints.unwrap_or_default().into_iter().map(&mut taint).collect(),
            meta: wire.metadata.meta(&mut errors),
            labels: wire.metadata.labels.0,
            unschedulable: wire.spec.unschedulable.unwrap_or_default(),
            allocatable: wire.status.allocatable.unwrap_or_default().allocatable("status.allocatable", &mut errors),
            field_error: errors.into_error(),
        }
    }
}
