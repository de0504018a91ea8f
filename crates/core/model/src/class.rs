//! A class: how storage of one sort is made and bound (StorageClass).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::{FieldErrors, Lean, WireMeta, decode};
use crate::migration::{Plugin, ZONE_PARAMETER, ZONES_PARAMETER};
use crate::topology::WireTopology;
use crate::{Annotation, Annotations, FieldError, Meta, Name, ReclaimPolicy, Topologies};

/// When a claim of a class is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingMode {
    /// At once.
    Immediate,
    /// When a pod uses it and a scheduler has chosen a node.
    WaitForFirstConsumer,
}

impl BindingMode {
    fn parse(text: &str) -> Option<BindingMode> {
        match text {
            "Immediate" => Some(BindingMode::Immediate),
            "WaitForFirstConsumer" => Some(BindingMode::WaitForFirstConsumer),
            _ => None,
        }
    }
}

/// A class, as far as rules read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Who it is.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// When it was created, in a form that sorts by time (RFC 3339, UTC).
    pub created: Name,
    /// Who makes its volumes.
    pub provisioner: Name,
    /// What becomes of its volumes.
    pub policy: ReclaimPolicy,
    /// How its volumes are mounted.
    pub mount_options: Vec<Name>,
    /// When its claims are bound; `None` where an API server did not fill in the default.
    pub binding: Option<BindingMode>,
    /// Where its volumes may be made.
    pub topologies: Topologies,
    /// The zones among its parameters, where a plugin that CSI drivers have taken over from is asked so.
    pub zones: Box<[Name]>,
    /// What could not be understood of it.
    pub flaw: Option<Box<FieldError>>,
}

impl Class {
    /// Decodes a class. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Class, FieldError> {
        decode(json)
    }

    /// Whether claims that say nothing of a class get this one.
    pub fn is_default(&self) -> bool {
        [Annotation::IsDefaultClass, Annotation::BetaIsDefaultClass]
            .into_iter()
            .any(|annotation| self.annotations.get(annotation).is_some_and(|value| value == "true"))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wire {
    metadata: WireMeta,
    provisioner: Option<Name>,
    reclaim_policy: Option<Name>,
    mount_options: Option<Vec<Name>>,
    volume_binding_mode: Option<Name>,
    allowed_topologies: Option<Vec<WireTopology>>,
    parameters: Option<BTreeMap<Name, Option<Name>>>,
}

impl Wire {
    /// The zones that are named among the parameters of an in-tree plugin. Of one and several, several count.
    fn zones(&mut self) -> Box<[Name]> {
        let plugin = self.provisioner.as_deref().and_then(Plugin::named).filter(|plugin| plugin.takes_zones());
        let parameters = self.parameters.take().filter(|_| plugin.is_some()).unwrap_or_default();
        let of = |wanted: &str| {
            let (_, value) = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted))?;
            Some(value.clone().unwrap_or_default())
        };
        match (of(ZONES_PARAMETER), of(ZONE_PARAMETER)) {
            (Some(zones), _) => zones.split(',').map(Name::from).collect(),
            (None, Some(zone)) => [zone].into(),
            (None, None) => Box::default(),
        }
    }
}

impl Lean for Class {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut flaws: FieldErrors) -> Class {
        let meta = wire.metadata.meta(&mut flaws);
        let zones = wire.zones();
        Class {
            meta,
            annotations: wire.metadata.annotations,
            created: wire.metadata.creation_timestamp.take().unwrap_or_default(),
            provisioner: wire.provisioner.unwrap_or_default(),
            // A class without a policy deletes: that is the API's default, and a server fills it in.
            policy: ReclaimPolicy::parse(wire.reclaim_policy.unwrap_or(Name::new_static("Delete"))),
            mount_options: wire.mount_options.unwrap_or_default(),
            binding: flaws
                .word("volumeBindingMode", wire.volume_binding_mode, |text| BindingMode::parse(text).map(Some)),
            zones,
            topologies: wire.allowed_topologies.unwrap_or_default().into_iter().collect(),
            flaw: flaws.into_flaw(),
        }
    }
}
