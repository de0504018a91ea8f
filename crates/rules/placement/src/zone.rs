//! Whether a node is in the zones and regions of a pod's volumes, by the labels of both (upstream's
//! VolumeZone). Older volumes have these labels instead of node affinity.

use bindery_cache::Cache;
use bindery_model::migration::ZONE_DELIMITER;
use bindery_model::{BindingMode, ClaimKey, Name, Node, Pod, Volume};

use crate::migration::{TOPOLOGY_LABELS, current_label};
use crate::prepare::named_claims;
use crate::{ClaimRejection, NodeRejection, PodRejection};

/// The zones and regions of a pod's bound volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Zones(Vec<Zone>);

/// A label that a node must have, and its allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    label: &'static str,
    values: Vec<Name>,
}

/// Reads the zones of a pod's bound volumes. Claims because of which the pod is rejected are added
/// to `rejected` and left out. Ephemeral volumes are skipped, as upstream does.
pub fn prepare(cache: &Cache, pod: &Pod, rejected: &mut Vec<ClaimRejection>) -> Zones {
    let mut zones = Vec::new();
    for key in named_claims(pod) {
        match of_claim(cache, &key) {
            Ok(volume) => zones.extend(volume.into_iter().flat_map(zones_of)),
            Err(why) => rejected.push(ClaimRejection { claim: key, why }),
        }
    }
    Zones(zones)
}

/// The volume of a bound claim; none for a claim whose binding is delayed.
fn of_claim<'a>(cache: &'a Cache, key: &ClaimKey) -> Result<Option<&'a Volume>, PodRejection> {
    let claim = cache.claim(key).ok_or_else(|| PodRejection::ClaimMissing(key.name.clone()))?;
    match &claim.volume {
        Some(name) => {
            cache.volume(name).map(|volume| Some(&**volume)).ok_or_else(|| PodRejection::VolumeMissing(name.clone()))
        }
        None => waits_for_consumer(cache, claim.class()).map(|()| None),
    }
}

/// Rejects an unbound claim, unless its class delays binding.
fn waits_for_consumer(cache: &Cache, class: &Name) -> Result<(), PodRejection> {
    if class.is_empty() {
        return Err(PodRejection::NoClass);
    }
    match cache.class(class).ok_or_else(|| PodRejection::ClassMissing(class.clone()))?.binding {
        Some(BindingMode::WaitForFirstConsumer) => Ok(()),
        Some(BindingMode::Immediate) => Err(PodRejection::NoVolume),
        None => {
            let name = class.as_str();
            Err(PodRejection::ClassInvalid(format!("VolumeBindingMode not set for StorageClass {name:?}")))
        }
    }
}

/// The requirements of a volume's labels on nodes. A label with an empty zone in its list is
/// ignored.
fn zones_of(volume: &Volume) -> impl Iterator<Item = Zone> {
    TOPOLOGY_LABELS.into_iter().filter_map(|label| {
        let values: Vec<&str> = volume.labels.get(label)?.split(ZONE_DELIMITER).map(str::trim).collect();
        let is_valid = values.iter().all(|value| !value.is_empty());
        is_valid.then(|| Zone { label, values: values.into_iter().map(Name::from).collect() })
    })
}

impl Zones {
    /// The rejection of a node, if it is not suitable. A node without any of these labels is
    /// accepted.
    pub fn check(&self, node: &Node) -> Option<NodeRejection> {
        if self.0.is_empty() || TOPOLOGY_LABELS.into_iter().all(|label| node.labels.get(label).is_none()) {
            return None;
        }
        let is_in = |zone: &Zone| {
            let value = node.labels.get(zone.label).or_else(|| node.labels.get(current_label(zone.label)));
            value.is_some_and(|value| zone.values.contains(value))
        };
        (!self.0.iter().all(is_in)).then_some(NodeRejection::ZoneMismatch)
    }
}
