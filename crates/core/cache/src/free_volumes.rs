//! Volumes that any matching claim may get, in the order in which they are chosen.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{AccessSet, Claim, Name, Quantity, Volume, VolumeMode};
use rustc_hash::FxHashMap;

use crate::sized_volume::SizedVolume;

/// The fields that must be equal between a claim and its volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MatchKey {
    class: Name,
    attributes_class: Name,
    mode: VolumeMode,
}

impl MatchKey {
    /// The key under which a volume is indexed.
    pub fn of_volume(volume: &Volume) -> MatchKey {
        MatchKey {
            class: volume.class().clone(),
            attributes_class: volume.attributes().clone(),
            mode: volume.volume_mode,
        }
    }

    /// The key under which a claim finds its volumes.
    pub fn of_claim(claim: &Claim) -> MatchKey {
        MatchKey { class: claim.class().clone(), attributes_class: claim.attributes().clone(), mode: claim.volume_mode }
    }
}

/// Volumes with the same access modes, in the order in which they are chosen.
type Volumes = BTreeSet<SizedVolume>;

/// Free volumes by match key, then by access modes, capacity and name.
#[derive(Debug, Clone, Default)]
pub struct FreeVolumes {
    /// Groups with the fewest access modes come first.
    groups: FxHashMap<MatchKey, Vec<(AccessSet, Volumes)>>,
}

/// Fewest modes first, so that a volume with more modes is left for a claim that requires them.
fn group_order(modes: AccessSet) -> (u32, AccessSet) {
    (modes.count(), modes)
}

impl FreeVolumes {
    pub(crate) fn insert(&mut self, volume: &Arc<Volume>) {
        let groups = self.groups.entry(MatchKey::of_volume(volume)).or_default();
        let modes = volume.modes.set();
        let at = match groups.binary_search_by_key(&group_order(modes), |(known, _)| group_order(*known)) {
            Ok(at) => at,
            Err(at) => {
                groups.insert(at, (modes, Volumes::new()));
                at
            }
        };
        groups[at].1.replace(SizedVolume::of(volume));
    }

    pub(crate) fn remove(&mut self, volume: &Arc<Volume>) {
        let key = MatchKey::of_volume(volume);
        let Some(groups) = self.groups.get_mut(&key) else { return };
        let modes = volume.modes.set();
        let Some(at) = groups.iter().position(|(known, _)| *known == modes) else { return };
        groups[at].1.remove(&SizedVolume::of(volume));
        if groups[at].1.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.groups.remove(&key);
        }
    }

    /// The first acceptable volume under a key with all these modes and at least this size: fewest
    /// access modes, then smallest, then first by name.
    pub fn first(
        &self,
        key: &MatchKey,
        modes: AccessSet,
        size: &Quantity,
        mut accept: impl FnMut(&Volume) -> bool,
    ) -> Option<&Arc<Volume>> {
        let groups = self.groups.get(key)?;
        let least = SizedVolume::lower_bound(size);
        let mut best: Option<(u32, &SizedVolume)> = None;
        for (group_modes, volumes) in groups.iter().filter(|(group_modes, _)| group_modes.contains(modes)) {
            if best.is_some_and(|(count, _)| count < group_modes.count()) {
                break;
            }
            let found = volumes.range(&least..).find(|sized| accept(&sized.volume));
            if let Some(sized) = found.filter(|sized| best.is_none_or(|(_, so_far)| *sized < so_far)) {
                best = Some((group_modes.count(), sized));
            }
        }
        best.map(|(_, sized)| &sized.volume)
    }

    /// The number of free volumes.
    pub fn len(&self) -> usize {
        self.groups.values().flatten().map(|(_, volumes)| volumes.len()).sum()
    }

    /// Whether no volume is free.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}
