//! Volumes that any fitting claim may have, in the order in which they are chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_volumes::{AccessSet, Claim, Name, Volume, VolumeMode};
use rustc_hash::FxHashMap;

/// What must be equal between a claim and a volume: they meet in one place, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    class: Name,
    attributes: Name,
    mode: VolumeMode,
}

impl Place {
    /// Where a volume is found.
    pub fn of_volume(volume: &Volume) -> Place {
        Place { class: volume.class().clone(), attributes: volume.attributes().clone(), mode: volume.volume_mode }
    }

    /// Where a claim looks.
    pub fn of_claim(claim: &Claim) -> Place {
        Place { class: claim.class().clone(), attributes: claim.attributes().clone(), mode: claim.volume_mode }
    }
}

/// A volume's rank: the smallest first, then the first by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    capacity_nanos: i128,
    name: Name,
}

impl Rank {
    fn of(volume: &Volume) -> Rank {
        Rank { capacity_nanos: volume.holds().nanos(), name: volume.name().clone() }
    }
}

/// Volumes with the same access modes, in the order in which they are chosen.
type Ranked = BTreeMap<Rank, Arc<Volume>>;

/// Free volumes by place, then by access modes, then by capacity, then by name.
#[derive(Debug, Default)]
pub struct Pool {
    /// In each place, the groups with the fewest access modes come first.
    places: FxHashMap<Place, Vec<(AccessSet, Ranked)>>,
}

/// The order of groups: fewest modes first, so that a volume that can do more is left for who needs it.
fn group_order(modes: AccessSet) -> (u32, AccessSet) {
    (modes.count(), modes)
}

impl Pool {
    pub(crate) fn insert(&mut self, volume: &Arc<Volume>) {
        let groups = self.places.entry(Place::of_volume(volume)).or_default();
        let modes = volume.modes.set();
        let at = match groups.binary_search_by_key(&group_order(modes), |(known, _)| group_order(*known)) {
            Ok(at) => at,
            Err(at) => {
                groups.insert(at, (modes, Ranked::new()));
                at
            }
        };
        groups[at].1.insert(Rank::of(volume), volume.clone());
    }

    pub(crate) fn remove(&mut self, volume: &Volume) {
        let place = Place::of_volume(volume);
        let Some(groups) = self.places.get_mut(&place) else { return };
        let modes = volume.modes.set();
        let Some(at) = groups.iter().position(|(known, _)| *known == modes) else { return };
        groups[at].1.remove(&Rank::of(volume));
        if groups[at].1.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.places.remove(&place);
        }
    }

    /// The first volume in a place that has all the modes and at least the capacity, and that is acceptable: of the fewest
    /// access modes, then the smallest, then the first by name.
    pub fn first(
        &self,
        place: &Place,
        modes: AccessSet,
        capacity_nanos: i128,
        mut accept: impl FnMut(&Volume) -> bool,
    ) -> Option<&Arc<Volume>> {
        let groups = self.places.get(place)?;
        let least = Rank { capacity_nanos, name: Name::default() };
        let mut best: Option<(u32, &Rank, &Arc<Volume>)> = None;
        for (group_modes, volumes) in groups.iter().filter(|(group_modes, _)| group_modes.contains(modes)) {
            if best.is_some_and(|(count, _, _)| count < group_modes.count()) {
                break;
            }
            let found = volumes.range(&least..).find(|(_, volume)| accept(volume));
            let better = |(rank, _): &(&Rank, &Arc<Volume>)| best.is_none_or(|(_, so_far, _)| *rank < so_far);
            if let Some((rank, volume)) = found.filter(better) {
                best = Some((group_modes.count(), rank, volume));
            }
        }
        best.map(|(_, _, volume)| volume)
    }

    /// How many volumes are in it.
    pub fn len(&self) -> usize {
        self.places.values().flatten().map(|(_, volumes)| volumes.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
