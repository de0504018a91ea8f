//! A node: a machine that pods run on.

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::resources::WireAmounts;
use crate::{Allocatable, FieldError, Labels, Meta, Name};

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaintEffect {
    /// They are not put on the node.
    #[default]
    NoSchedule,
    /// They are put elsewhere if that can be.
    PreferNoSchedule,
    /// They are not put on the node, and do not stay there.
    NoExecute,
}

impl TaintEffect {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
    }

    /// The effect of that name on the wire.
    pub fn parse(text: &str) -> Option<TaintEffect> {
        let all = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
        all.into_iter().find(|effect| effect.as_str() == text)
    }
}

/// What keeps pods away from a node, unless they tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taint {
    /// What it is about.
    pub key: Name,
    /// What it says of that.
    pub value: Name,
    /// What it does.
    pub effect: TaintEffect,
}

/// A node, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Who it is.
    pub meta: Meta,
    /// Where it stands, and what it is.
    pub labels: Labels,
    /// Whether new pods are kept away from it.
    pub unschedulable: bool,
    /// What keeps pods away that do not tolerate it.
    pub taints: Box<[Taint]>,
    /// How much it has for pods.
    pub allocatable: Allocatable,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
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
    allocatable: Option<WireAmounts>,
}

impl Lean for Node {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: FieldErrors) -> Node {
        let mut taint = |wire: WireTaint| Taint {
            key: wire.key,
            value: wire.value.unwrap_or_default(),
            effect: flaws.word("spec.taints.effect", wire.effect, TaintEffect::parse),
        };
        Node {
            taints: wire.spec.taints.unwrap_or_default().into_iter().map(&mut taint).collect(),
            meta: wire.metadata.meta(&mut flaws),
            labels: wire.metadata.labels.0,
            unschedulable: wire.spec.unschedulable.unwrap_or_default(),
            allocatable: wire.status.allocatable.unwrap_or_default().allocatable("status.allocatable", &mut flaws),
            flaw: flaws.into_flaw(),
        }
    }
}
