//! Volumes that any matching claim may get, in the order in which they are chosen.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{AccessSet, Claim, Name, Quantity, Selector, Volume, VolumeMode};
use rustc_hash::FxHashMap;

use crate::label_index::LabelIndex;
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

/// Volumes in the order in which they are chosen.
type Volumes = BTreeSet<SizedVolume>;

/// Volumes with the same access modes.
#[derive(Debug, Clone, Default)]
struct Group {
    all: Volumes,
    by_labels: LabelIndex<Volumes>,
}

impl Group {
    fn insert(&mut self, sized: SizedVolume) {
        let volume = sized.volume.clone();
        self.by_labels.insert(&volume.labels, |volumes| drop(volumes.replace(sized.clone())));
        self.all.replace(sized);
    }

    fn remove(&mut self, sized: &SizedVolume) {
        // The labels may have changed: those in the index count.
        let Some(indexed) = self.all.take(sized) else { return };
        self.by_labels.remove(&indexed.volume.labels, |volumes| {
            volumes.remove(&indexed);
            volumes.is_empty()
        });
    }

    /// The sets that contain every volume which a selector matches, and perhaps others.
    fn matching(&self, selector: Option<&Selector>) -> Vec<&Volumes> {
        match selector {
            None => vec![&self.all],
            Some(selector) => self.by_labels.matching(selector),
        }
    }
}

/// Free volumes by match key, then by access modes, capacity and name.
#[derive(Debug, Clone, Default)]
pub struct FreeVolumes {
    /// Groups with the fewest access modes come first.
    groups: FxHashMap<MatchKey, Vec<(AccessSet, Group)>>,
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
                groups.insert(at, (modes, Group::default()));
                at
            }
        };
        groups[at].1.insert(SizedVolume::of(volume));
    }

    pub(crate) fn remove(&mut self, volume: &Arc<Volume>) {
        let key = MatchKey::of_volume(volume);
        let Some(groups) = self.groups.get_mut(&key) else { return };
        let modes = volume.modes.set();
        let Some(at) = groups.iter().position(|(known, _)| *known == modes) else { return };
        groups[at].1.remove(&SizedVolume::of(volume));
        if groups[at].1.all.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.groups.remove(&key);
        }
    }

    /// The first acceptable volume under a key with all these modes and at least this size: fewest
    /// access modes, then smallest, then first by name. Volumes that the selector does not match
    /// are not considered.
    pub fn first(
        &self,
        key: &MatchKey,
        modes: AccessSet,
        size: &Quantity,
        selector: Option<&Selector>,
        mut accept: impl FnMut(&Volume) -> bool,
    ) -> Option<&Arc<Volume>> {
        let groups = self.groups.get(key)?;
        let least = SizedVolume::lower_bound(size);
        let mut best: Option<(u32, &SizedVolume)> = None;
        for (group_modes, group) in groups.iter().filter(|(group_modes, _)| group_modes.contains(modes)) {
            if best.is_some_and(|(count, _)| count < group_modes.count()) {
                break;
            }
            for volumes in group.matching(selector) {
                let found = volumes.range(&least..).find(|sized| accept(&sized.volume));
                if let Some(sized) = found.filter(|sized| best.is_none_or(|(_, so_far)| *sized < so_far)) {
                    best = Some((group_modes.count(), sized));
                }
            }
        }
        best.map(|(_, sized)| &sized.volume)
    }

    /// The number of free volumes.
    pub fn len(&self) -> usize {
        self.groups.values().flatten().map(|(_, group)| group.all.len()).sum()
    }

    /// Whether no volume is free.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use bindery_model::Meta;

    use super::*;

    /// Volumes with a few labels: every second one has an SSD, and there are 50 racks.
    fn pool(count: usize) -> FreeVolumes {
        let mut pool = FreeVolumes::default();
        for n in 0..count {
            let disk = if n.is_multiple_of(2) { "ssd" } else { "hdd" };
            let labels = [("disk".into(), disk.into()), ("rack".into(), format!("r{}", n % 50).into())];
            let meta = Meta { name: format!("v{n}").into(), ..Meta::default() };
            pool.insert(&Arc::new(Volume { meta, labels: labels.into_iter().collect(), ..Volume::default() }));
        }
        pool
    }

    #[test]
    fn claim_with_a_selector_does_not_look_at_volumes_that_it_does_not_match() {
        let pool = pool(10_000);
        let key = MatchKey::of_claim(&Claim::default());
        let look = |requirements: &[(&str, &str, &[&str])]| {
            let mut selector = Selector::default();
            for (key, operator, values) in requirements {
                let values = values.iter().map(|value| Name::from(*value)).collect();
                selector.express((*key).into(), operator, values).expect("a valid requirement");
            }
            let mut looked_at = 0;
            let found = pool.first(&key, AccessSet::default(), &Quantity::of_bytes(0), Some(&selector), |volume| {
                looked_at += 1;
                selector.matches(&volume.labels)
            });
            (found.map(|volume| volume.name().to_string()), looked_at)
        };
        // Odd racks have no SSD.
        assert_eq!(look(&[("disk", "In", &["ssd"]), ("rack", "In", &["r1"])]), (None, 0));
        assert_eq!(look(&[("disk", "In", &["nvme", "tape"])]), (None, 0));
        assert_eq!(look(&[("rack", "DoesNotExist", &[])]), (None, 0));
        assert_eq!(look(&[("disk", "In", &["ssd"]), ("rack", "In", &["r8", "r1"])]), (Some("v1008".into()), 1));
        let (found, looked_at) = look(&[("disk", "NotIn", &["hdd"])]);
        assert_eq!((found.as_deref(), looked_at <= 50), (Some("v0"), true), "one for each combination of labels");
    }
}
