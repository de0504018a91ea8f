//! Whether a node is in the zones and regions of a pod's volumes, by the labels of both. Volumes of today say so in their node
//! affinity; those of old have labels only.

use bindery_model::migration::ZONE_DELIMITER;
use bindery_model::{BindingMode, ClaimKey, Name, Node, Volume};

use crate::migration::{TOPOLOGY, newer};
use crate::prepare::first;
use crate::{Obstacle, Refusal, Refused, User, View};

/// Where a pod's bound volumes are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Zones(Vec<Zone>);

/// A label that a node must have, and its values that will do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    label: &'static str,
    values: Vec<Name>,
}

/// Finds out where a pod's bound volumes are; why it cannot be placed on any node, if it cannot. Ephemeral volumes are passed
/// over, as upstream does.
pub fn prepare<V: View>(view: &V, pod: User<'_>) -> Result<Zones, Refusal> {
    let mut refused = Vec::new();
    let zones = survey(view, pod, &mut refused);
    first(refused).map_or(Ok(zones), Err)
}

/// Finds out where a pod's bound volumes are. Claims that keep it from every node are told of, and left out.
pub(crate) fn survey<V: View>(view: &V, pod: User<'_>, refused: &mut Vec<Refused>) -> Zones {
    let mut zones = Vec::new();
    for key in pod.named_claims() {
        match of_claim(view, &key) {
            Ok(volume) => zones.extend(volume.into_iter().flat_map(zones_of)),
            Err(why) => refused.push(Refused { claim: key, why }),
        }
    }
    Zones(zones)
}

/// The volume of a bound claim; none when it will be bound where its pod is.
fn of_claim<'a, V: View>(view: &'a V, key: &ClaimKey) -> Result<Option<&'a Volume>, Refusal> {
    let claim = view.claim(key).ok_or_else(|| Refusal::ClaimMissing(key.name.clone()))?;
    match &claim.volume {
        Some(name) => {
            view.volume(name).map(|volume| Some(&**volume)).ok_or_else(|| Refusal::VolumeMissing(name.clone()))
        }
        None => waits_for_consumer(view, claim.class()).map(|()| None),
    }
}

/// Refuses a pod with an unbound claim of that class, unless it is bound when the pod has a node.
fn waits_for_consumer<V: View>(view: &V, class: &Name) -> Result<(), Refusal> {
    if class.is_empty() {
        return Err(Refusal::NoClass);
    }
    match view.class(class).ok_or_else(|| Refusal::ClassMissing(class.clone()))?.binding {
        Some(BindingMode::WaitForFirstConsumer) => Ok(()),
        Some(BindingMode::Immediate) => Err(Refusal::NoVolume),
        None => {
            let name = class.as_str();
            Err(Refusal::ClassUnclear(format!("VolumeBindingMode not set for StorageClass {name:?}")))
        }
    }
}

/// What a volume's labels demand of nodes. A label with an empty zone in its list demands nothing.
fn zones_of(volume: &Volume) -> impl Iterator<Item = Zone> {
    TOPOLOGY.into_iter().filter_map(|label| {
        let values: Vec<&str> = volume.labels.get(label)?.split(ZONE_DELIMITER).map(str::trim).collect();
        let is_sensible = values.iter().all(|value| !value.is_empty());
        is_sensible.then(|| Zone { label, values: values.into_iter().map(Name::from).collect() })
    })
}

impl Zones {
    /// Whether nothing is demanded of nodes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is against a node, if anything is. One that says nothing of its zone is taken to be in the only one there is.
    pub fn check(&self, node: &Node) -> Option<Obstacle> {
        if self.0.is_empty() || TOPOLOGY.into_iter().all(|label| node.labels.get(label).is_none()) {
            return None;
        }
        let is_in = |zone: &Zone| {
            let value = node.labels.get(zone.label).or_else(|| node.labels.get(newer(zone.label)));
            value.is_some_and(|value| zone.values.contains(value))
        };
        (!self.0.iter().all(is_in)).then_some(Obstacle::OtherZone)
    }
}
