//! Which free volumes, and which capacity for new ones, a node can reach, indexed by node labels.
//!
//! Scheduling a pod asks the same question for many nodes, so the cost for a node must not depend
//! on what it cannot reach. Every entry is indexed under labels of which every node that reaches it
//! has at least one ([`RequiredLabels`]). A lookup reads the sets under the node's own labels, and
//! the set of entries that no label restricts.
//!
//! Invariants:
//! - Whatever a node can reach is under one of its labels, or unrestricted. The converse does not
//!   hold: where the label alone is not sufficient, the lookup tests the candidate.
//! - Each set is in the order in which entries are chosen: volumes by capacity, then name;
//!   capacities by key. So the first acceptable entry of each set is enough, and the least of those
//!   is the overall first.
//! - Volumes are free and Available, and each group has one [`MatchKey`] and one set of access
//!   modes: a volume in it matches except for its size, its labels and the node. So the lookup does
//!   not dereference volumes, which makes it fast: an entry has the size, and whether being under
//!   its label means that the node reaches it.
//! - The labels derive from the object alone, so an entry is found again when it is removed.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{AccessSet, Capacity, Claim, Labels, Name, RequiredLabels, Selector, Volume, VolumePhase};
use rustc_hash::FxHashMap;

use crate::MatchKey;
use crate::label_index::LabelIndex;
use crate::sized_volume::SizedVolume;

/// Ordered entries by the labels of the nodes that may reach them.
#[derive(Debug, Clone)]
struct ByNodeLabel<T> {
    unrestricted: BTreeSet<T>,
    /// By label key, then by value. There are few keys: host names, zones.
    by_label: Vec<(Name, FxHashMap<Name, BTreeSet<T>>)>,
}

impl<T> Default for ByNodeLabel<T> {
    fn default() -> Self {
        ByNodeLabel { unrestricted: BTreeSet::new(), by_label: Vec::new() }
    }
}

impl<T: Ord + Clone> ByNodeLabel<T> {
    fn insert(&mut self, labels: &RequiredLabels<'_>, entry: &T) {
        match labels {
            RequiredLabels::Unrestricted => {
                self.unrestricted.replace(entry.clone());
            }
            RequiredLabels::OneOf(labels) => {
                for (key, value) in labels {
                    let at = self.by_label.iter().position(|(known, _)| known == *key).unwrap_or_else(|| {
                        self.by_label.push(((*key).clone(), FxHashMap::default()));
                        self.by_label.len() - 1
                    });
                    self.by_label[at].1.entry((*value).clone()).or_default().replace(entry.clone());
                }
            }
        }
    }

    fn remove(&mut self, labels: &RequiredLabels<'_>, entry: &T) {
        match labels {
            RequiredLabels::Unrestricted => {
                self.unrestricted.remove(entry);
            }
            RequiredLabels::OneOf(labels) => {
                for (key, value) in labels {
                    let Some((_, values)) = self.by_label.iter_mut().find(|(known, _)| known == *key) else { continue };
                    let Some(entries) = values.get_mut(*value) else { continue };
                    entries.remove(entry);
                    if entries.is_empty() {
                        values.remove(*value);
                    }
                }
                self.by_label.retain(|(_, values)| !values.is_empty());
            }
        }
    }

    /// All entries; those under several labels several times.
    fn iter(&self) -> impl Iterator<Item = &T> {
        let by_label = self.by_label.iter().flat_map(|(_, values)| values.values());
        by_label.chain([&self.unrestricted]).flatten()
    }

    fn is_empty(&self) -> bool {
        self.unrestricted.is_empty() && self.by_label.is_empty()
    }

    /// All sets with entries that a node with these labels may reach.
    fn reachable(&self, labels: &Labels) -> impl Iterator<Item = &BTreeSet<T>> {
        let by_label = self.by_label.iter().filter_map(|(key, values)| values.get(labels.get(key)?));
        by_label.chain((!self.unrestricted.is_empty()).then_some(&self.unrestricted))
    }
}

/// What a claim requires of a volume, prepared once for lookups on many nodes.
#[derive(Debug, Clone)]
pub struct VolumeRequirements {
    key: MatchKey,
    modes: AccessSet,
    least: SizedVolume,
}

impl VolumeRequirements {
    /// The requirements of a claim.
    pub fn of(claim: &Claim) -> VolumeRequirements {
        let least = SizedVolume::lower_bound(claim.requested());
        VolumeRequirements { key: MatchKey::of_claim(claim), modes: claim.modes.set(), least }
    }
}

/// Volumes with the same match key and access modes.
#[derive(Debug, Clone, Default)]
struct VolumeGroup {
    all: ByNodeLabel<SizedVolume>,
    /// Those that have labels, by their labels.
    by_labels: LabelIndex<ByNodeLabel<SizedVolume>>,
}

impl VolumeGroup {
    fn insert(&mut self, volume: &Arc<Volume>) {
        let (nodes, sized) = (RequiredLabels::of_nodes(volume.nodes.as_deref()), SizedVolume::of(volume));
        self.all.insert(&nodes, &sized);
        if !volume.labels.is_empty() {
            self.by_labels.insert(&volume.labels, |labelled| labelled.insert(&nodes, &sized));
        }
    }

    fn remove(&mut self, volume: &Arc<Volume>) {
        let (nodes, sized) = (RequiredLabels::of_nodes(volume.nodes.as_deref()), SizedVolume::of(volume));
        self.all.remove(&nodes, &sized);
        self.by_labels.remove(&volume.labels, |labelled| {
            labelled.remove(&nodes, &sized);
            labelled.is_empty()
        });
    }

    /// The volumes that match a selector.
    fn selected(&self, selector: &Selector) -> Vec<Group<'_>> {
        // Only a selector that requires no label matches volumes without any.
        if selector.matches(&Labels::default()) {
            return vec![Group::Selected(merged(self.all.iter(), selector))];
        }
        let matching = self.by_labels.matching(selector);
        match matching.len() <= UNMERGED_MAX {
            true => matching.into_iter().map(Group::All).collect(),
            false => vec![Group::Selected(merged(matching.into_iter().flat_map(ByNodeLabel::iter), selector))],
        }
    }
}

/// With more different combinations of labels, it is faster to merge the volumes once than to look
/// for each combination on each node.
const UNMERGED_MAX: usize = 8;

/// Volumes with the same match key, by their access modes.
type Groups = Vec<(AccessSet, VolumeGroup)>;

/// Available volumes by match key, then by access modes, node labels, capacity and name.
#[derive(Debug, Clone, Default)]
pub struct TopologyIndex {
    groups: FxHashMap<MatchKey, Groups>,
}

impl TopologyIndex {
    /// Whether a volume belongs in this index: it is free, and its phase says so.
    pub fn includes(volume: &Volume) -> bool {
        volume.is_free() && volume.phase == VolumePhase::Available
    }

    /// Inserts a volume, or replaces it.
    pub fn insert(&mut self, volume: &Arc<Volume>) {
        debug_assert!(TopologyIndex::includes(volume), "only available volumes are indexed");
        let groups = self.groups.entry(MatchKey::of_volume(volume)).or_default();
        let modes = volume.modes.set();
        let at = groups.iter().position(|(known, _)| *known == modes).unwrap_or_else(|| {
            groups.push((modes, VolumeGroup::default()));
            groups.len() - 1
        });
        groups[at].1.insert(volume);
    }

    /// Removes a volume, given in the state in which it was inserted.
    pub fn remove(&mut self, volume: &Arc<Volume>) {
        let key = MatchKey::of_volume(volume);
        let Some(groups) = self.groups.get_mut(&key) else { return };
        let Some(at) = groups.iter().position(|(known, _)| *known == volume.modes.set()) else { return };
        groups[at].1.remove(volume);
        if groups[at].1.all.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.groups.remove(&key);
        }
    }

    /// The volumes that match a claim except for size and node. The selector is applied once, for
    /// all nodes.
    pub fn candidates(&self, requirements: &VolumeRequirements, selector: Option<&Selector>) -> Candidates<'_> {
        let groups = self.groups.get(&requirements.key).into_iter().flatten();
        let groups = groups.filter(|(modes, _)| modes.contains(requirements.modes)).map(|(_, group)| group);
        match selector {
            None => Candidates(groups.map(|group| Group::All(&group.all)).collect()),
            Some(selector) => Candidates(groups.flat_map(|group| group.selected(selector)).collect()),
        }
    }
}

/// Those of some volumes that match a selector.
fn merged<'a>(volumes: impl Iterator<Item = &'a SizedVolume>, selector: &Selector) -> ByNodeLabel<SizedVolume> {
    let mut merged = ByNodeLabel::default();
    for sized in volumes.filter(|sized| selector.matches(&sized.volume.labels)) {
        merged.insert(&RequiredLabels::of_nodes(sized.volume.nodes.as_deref()), sized);
    }
    merged
}

#[derive(Debug)]
enum Group<'a> {
    All(&'a ByNodeLabel<SizedVolume>),
    Selected(ByNodeLabel<SizedVolume>),
}

/// Volumes that match a claim except for size and node.
#[derive(Debug)]
pub struct Candidates<'a>(Vec<Group<'a>>);

/// A volume that a node can reach.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a>(&'a SizedVolume);

impl<'a> Candidate<'a> {
    /// The volume.
    pub fn volume(self) -> &'a Arc<Volume> {
        &self.0.volume
    }

    /// Its capacity in whole bytes, rounded up.
    pub fn bytes(self) -> i128 {
        self.0.bytes()
    }
}

/// The candidates that a node may reach.
#[derive(Debug, Default)]
pub struct ReachableVolumes<'a>(Vec<&'a BTreeSet<SizedVolume>>);

impl Candidates<'_> {
    fn groups(&self) -> impl Iterator<Item = &ByNodeLabel<SizedVolume>> {
        self.0.iter().map(|group| match group {
            Group::All(group) => *group,
            Group::Selected(group) => group,
        })
    }

    /// Whether these are the same as others, so that the volumes a node reaches are the same, too.
    pub fn are(&self, others: &Candidates<'_>) -> bool {
        self.0.len() == others.0.len() && self.groups().zip(others.groups()).all(|(a, b)| std::ptr::eq(a, b))
    }

    /// The candidates that a node with these labels may reach.
    pub fn reachable(&self, labels: &Labels) -> ReachableVolumes<'_> {
        ReachableVolumes(self.groups().flat_map(|group| group.reachable(labels)).collect())
    }
}

impl<'a> ReachableVolumes<'a> {
    /// The smallest sufficient volume that a node with these labels reaches and that is not taken;
    /// then the first by name.
    pub fn first(
        &self,
        requirements: &VolumeRequirements,
        labels: &Labels,
        is_taken: impl Fn(&Arc<Volume>) -> bool,
    ) -> Option<Candidate<'a>> {
        let accept = |sized: &&SizedVolume| reaches(labels, sized) && !is_taken(&sized.volume);
        let found = self.0.iter().filter_map(|volumes| volumes.range(&requirements.least..).find(accept));
        found.min().map(Candidate)
    }

    /// The largest volume that a node with these labels reaches and that is too small.
    pub fn largest_too_small(&self, requirements: &VolumeRequirements, labels: &Labels) -> Option<Candidate<'a>> {
        let accept = |sized: &&SizedVolume| reaches(labels, sized);
        let found = self.0.iter().filter_map(|volumes| volumes.range(..&requirements.least).rev().find(accept));
        found.max().map(Candidate)
    }
}

fn reaches(labels: &Labels, sized: &SizedVolume) -> bool {
    sized.is_reached_by_label || sized.volume.is_reachable(labels)
}

/// A capacity in the order of keys, with what a lookup needs.
#[derive(Debug, Clone)]
struct IndexedCapacity {
    /// The largest volume that can be provisioned, in whole bytes, if the driver reports it.
    limit_bytes: Option<i128>,
    /// Whether every node under whose label it is indexed can reach it.
    is_reached_by_label: bool,
    capacity: Arc<Capacity>,
}

impl IndexedCapacity {
    fn of(capacity: &Arc<Capacity>) -> IndexedCapacity {
        let limit = capacity.limit().filter(|_| capacity.field_error.is_none());
        IndexedCapacity {
            limit_bytes: limit.map(|limit| limit.units()),
            is_reached_by_label: matches!(&capacity.nodes, Some(Ok(selector)) if selector.is_label_sufficient()),
            capacity: capacity.clone(),
        }
    }

    fn key(&self) -> (&Name, &Name) {
        (&self.capacity.meta.namespace, &self.capacity.meta.name)
    }
}

impl Ord for IndexedCapacity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for IndexedCapacity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for IndexedCapacity {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for IndexedCapacity {}

/// Capacity for new volumes by class, then by node labels and key.
#[derive(Debug, Clone, Default)]
pub struct CapacityIndex {
    classes: FxHashMap<Name, ByNodeLabel<IndexedCapacity>>,
}

impl CapacityIndex {
    /// Inserts a capacity, or replaces it.
    pub fn insert(&mut self, capacity: &Arc<Capacity>) {
        let class = self.classes.entry(capacity.class.clone()).or_default();
        class.insert(&capacity.required_labels(), &IndexedCapacity::of(capacity));
    }

    /// Removes a capacity, given in the state in which it was inserted.
    pub fn remove(&mut self, capacity: &Arc<Capacity>) {
        let Some(class) = self.classes.get_mut(&capacity.class) else { return };
        class.remove(&capacity.required_labels(), &IndexedCapacity::of(capacity));
        if class.is_empty() {
            self.classes.remove(&capacity.class);
        }
    }

    /// The capacity for volumes of a class.
    pub fn of(&self, class: &Name) -> ClassCapacity<'_> {
        ClassCapacity(self.classes.get(class))
    }
}

/// Capacity for volumes of one class.
#[derive(Debug, Clone, Copy)]
pub struct ClassCapacity<'a>(Option<&'a ByNodeLabel<IndexedCapacity>>);

impl<'a> ClassCapacity<'a> {
    /// The first capacity by key that a node with these labels reaches and that has this many
    /// bytes.
    pub fn first(self, labels: &Labels, bytes: i128) -> Option<&'a Arc<Capacity>> {
        let accept = |indexed: &&IndexedCapacity| {
            indexed.limit_bytes.is_some_and(|limit| limit >= bytes)
                && (indexed.is_reached_by_label || indexed.capacity.is_for(labels))
        };
        let found = self.0?.reachable(labels).filter_map(|capacities| capacities.iter().find(accept));
        found.min().map(|indexed| &indexed.capacity)
    }
}
