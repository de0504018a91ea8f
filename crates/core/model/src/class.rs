//! StorageClass: how volumes of a class are provisioned and bound.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::{FieldErrors, FromWire, WireMeta, decode};
use crate::migration::{Plugin, ZONE_PARAMETER, ZONES_PARAMETER};
use crate::topology::WireTopology;
use crate::{Annotation, Annotations, FieldError, Meta, Name, ReclaimPolicy, Topologies};

/// When claims of a class are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingMode {
    /// As soon as the claim exists.
    Immediate,
    /// When a pod uses the claim and the scheduler has selected a node.
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

/// The fields of a StorageClass that rules read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its identity and version.
    pub meta: Meta,
    /// The annotations that rules know.
    pub annotations: Annotations,
    /// When it was created, in a form that sorts by time (RFC 3339, UTC).
    pub created: Name,
    /// The provisioner of its volumes.
    pub provisioner: Name,
    /// The reclaim policy of its volumes.
    pub policy: ReclaimPolicy,
    /// The mount options of its volumes.
    pub mount_options: Vec<Name>,
    /// When its claims are bound; `None` if the API server did not fill in the default.
    pub binding: Option<BindingMode>,
    /// Where its volumes may be provisioned.
    pub topologies: Topologies,
    /// The zones in its parameters, for an in-tree plugin that is migrated to CSI.
    pub zones: Box<[Name]>,
    /// The first field that could not be parsed.
    pub field_error: Option<Box<FieldError>>,
}

impl Class {
    /// Decodes a class. Fails only when it has no name.
    pub fn from_json(json: &[u8]) -> Result<Class, FieldError> {
        decode(json)
    }

    /// Whether it is a default class, for claims that specify none.
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
    /// The zones in the parameters of an in-tree plugin. `zones` takes precedence over `zone`.
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

impl FromWire for Class {
    type Wire = Wire;

    fn wire_meta(wire: &mut Wire) -> &mut WireMeta {
        &mut wire.metadata
    }

    fn from_wire(mut wire: Wire, mut errors: FieldErrors) -> Class {
        let meta = wire.metadata.meta(&mut errors);
        let zones = wire.zones();
        Class {
            meta,
            annotations: wire.metadata.annotations,
            created: wire.metadata.creation_timestamp.take().unwrap_or_default(),
            provisioner: wire.provisioner.unwrap_or_default(),
            // The API's default, which the server fills in.
            policy: ReclaimPolicy::parse(wire.reclaim_policy.unwrap_or(Name::new_static("Delete"))),
            mount_options: wire.mount_options.unwrap_or_default(),
            binding: errors
                .enumeration("volumeBindingMode", wire.volume_binding_mode, |text| BindingMode::parse(text).map(Some)),
            zones,
            topologies: wire.allowed_topologies.unwrap_or_default().into_iter().collect(),
            field_error: errors.into_error(),
        }
    }
}
