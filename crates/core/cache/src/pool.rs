//! Volumes that any fitting claim may have, in the order in which they are chosen.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{AccessSet, Claim, Name, Quantity, Volume, VolumeMode};
use rustc_hash::FxHashMap;

use crate::ranked::Ranked;

/// What must be equal between a claim and a volume: they meet in one place, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    class: Name,
    attributes: Name,
    mode: VolumeMode,
}

impl PoolKey {
    /// Where a volume is found.
    pub fn of_volume(volume: &Volume) -> PoolKey {
        PoolKey { class: volume.class().clone(), attributes: volume.attributes().clone(), mode: volume.volume_mode }
    }

    /// Where a claim looks.
    pub fn of_claim(claim: &Claim) -> PoolKey {
        PoolKey { class: claim.class().clone(), attributes: claim.attributes().clone(), mode: claim.volume_mode }
    }
}

/// Volumes with the same access modes, in the order in which they are chosen.
type Volumes = BTreeSet<Ranked>;

/// Free volumes by place, then by access modes, then by capacity, then by name.
#[derive(Debug, Default)]
pub struct Pool {
    /// In each place, the groups with the fewest access modes come first.
    places: FxHashMap<PoolKey, Vec<(AccessSet, Volumes)>>,
}

/// The order of groups: fewest modes first, so that a volume that can do more is left for who needs it.
fn group_order(modes: AccessSet) -> (u32, AccessSet) {
    (modes.count(), modes)
}

impl Pool {
    pub(crate) fn insert(&mut self, volume: &Arc<Volume>) {
        let groups = self.places.entry(PoolKey::of_volume(volume)).or_default();
        let modes = volume.modes.set();
        let at = match groups.binary_search_by_key(&group_order(modes), |(known, _)| group_order(*known)) {
            Ok(at) => at,
            Err(at) => {
                groups.insert(at, (modes, Volumes::new()));
                at
            }
        };
        groups[at].1.replace(Ranked::of(volume));
    }

    pub(crate) fn remove(&mut self, volume: &Arc<Volume>) {
        let place = PoolKey::of_volume(volume);
        let Some(groups) = self.places.get_mut(&place) else { return };
        let modes = volume.modes.set();
        let Some(at) = groups.iter().position(|(known, _)| *known == modes) else { return };
        groups[at].1.remove(&Ranked::of(volume));
        if groups[at].1.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.places.remove(&place);
        }
    }

    /// The first volume in a place that has all the modes and holds at least so much, and that is acceptable: of the fewest
    /// access modes, then the smallest, then the first by name.
    pub fn first(
        &self,
        place: &PoolKey,
        modes: AccessSet,
        size: &Quantity,
        mut accept: impl FnMut(&Volume) -> bool,
    ) -> Option<&Arc<Volume>> {
        let groups = self.places.get(place)?;
        let least = Ranked::least(size);
        let mut best: Option<(u32, &Ranked)> = None;
        for (group_modes, volumes) in groups.iter().filter(|(group_modes, _)| group_modes.contains(modes)) {
            if best.is_some_and(|(count, _)| count < group_modes.count()) {
                break;
            }
            let found = volumes.range(&least..).find(|ranked| accept(&ranked.volume));
            if let Some(ranked) = found.filter(|ranked| best.is_none_or(|(_, so_far)| *ranked < so_far)) {
                best = Some((group_modes.count(), ranked));
            }
        }
        best.map(|(_, ranked)| &ranked.volume)
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
