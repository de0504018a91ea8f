//! A pod: who uses claims, and where.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::{Flaws, Lean, WireMeta, decode};
use crate::{ClaimKey, Flaw, Meta, Name};

/// Where a pod lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// It runs, will run, or nobody knows.
    #[default]
    Active,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}

/// A pod, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Who it is.
    pub meta: Meta,
    /// Whether somebody deleted it.
    pub deleting: bool,
    /// The node it was given; empty while it waits for one.
    pub node: Name,
    /// How far it has come.
    pub phase: PodPhase,
    /// Whether one of its containers runs.
    pub has_running_container: bool,
    /// The claims that it uses, by name: those it names, and those that stand for its ephemeral volumes.
    pub claims: Vec<Name>,
    /// What could not be understood of it.
    pub flaw: Option<Box<Flaw>>,
}

impl Pod {
    /// Decodes a pod. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Pod, Flaw> {
        decode(json)
    }

    /// Where it lives.
    pub fn key(&self) -> PodKey {
        PodKey { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// The claims that it uses.
    pub fn claim_keys(&self) -> impl Iterator<Item = ClaimKey> {
        self.claims.iter().map(|name| ClaimKey { namespace: self.meta.namespace.clone(), name: name.clone() })
    }

    /// Whether it uses its volumes no more.
    pub fn is_terminated(&self) -> bool {
        self.phase != PodPhase::Active || (self.deleting && !self.has_running_container)
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
#[serde(rename_all = "camelCase", default)]
struct WireSpec {
    node_name: Option<Name>,
    volumes: Option<Vec<WireVolume>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireVolume {
    name: Name,
    persistent_volume_claim: Option<WireClaim>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireClaim {
    claim_name: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    phase: Option<Name>,
    init_container_statuses: Option<Vec<WireContainer>>,
    container_statuses: Option<Vec<WireContainer>>,
    ephemeral_container_statuses: Option<Vec<WireContainer>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireContainer {
    state: Option<WireState>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireState {
    running: Option<IgnoredAny>,
}

impl WireStatus {
    fn has_running_container(&self) -> bool {
        [&self.init_container_statuses, &self.container_statuses, &self.ephemeral_container_statuses]
            .into_iter()
            .flatten()
            .flatten()
            .any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()))
    }
}

impl Lean for Pod {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(wire: Wire, mut flaws: Flaws) -> Pod {
        let meta = wire.metadata.meta(&mut flaws);
        let claim_of = |volume: WireVolume| match volume {
            WireVolume { persistent_volume_claim: Some(claim), .. } => Some(claim.claim_name),
            WireVolume { ephemeral: Some(_), name, .. } => Some(Name::from(format!("{}-{name}", meta.name))),
            WireVolume { .. } => None,
        };
        let volumes = wire.spec.volumes.unwrap_or_default();
        Pod {
            claims: volumes.into_iter().filter_map(claim_of).collect(),
            deleting: wire.metadata.is_deleting(),
            node: wire.spec.node_name.unwrap_or_default(),
            has_running_container: wire.status.has_running_container(),
            phase: match wire.status.phase.as_deref() {
                Some("Succeeded") => PodPhase::Succeeded,
                Some("Failed") => PodPhase::Failed,
                // Pending, Running, Unknown, or a word of a later version: it may use its volumes.
                _ => PodPhase::Active,
            },
            meta,
            flaw: flaws.into_flaw(),
        }
    }
}
