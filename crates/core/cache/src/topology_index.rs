//! What a node can reach: free volumes, and room for new ones, by the labels of nodes.
//!
//! A pod is placed by asking many nodes the same question, so no node may look at what it cannot reach. Everything here is kept
//! under anchors: a label and a value that every node has which can reach it ([`Anchors`]). A node looks under its own labels,
//! and at what could not be anchored.
//!
//! Invariants:
//! - What a node can reach is under one of the node's labels, or anywhere. What is there need not be reachable: where the anchor
//!   alone does not tell, whoever looks tests that for the very candidate.
//! - Under every anchor things are in the order in which they are chosen: volumes by capacity, then name; room by key. So the
//!   first that passes under each anchor is enough, and the first of those is the first of all.
//! - Volumes are free, marked so, and of one place and one set of access modes each: of those that are looked through, each
//!   fits but for its capacity, its labels and the node. So nodes are asked without looking at a single volume, which is what
//!   makes it fast: an entry has its capacity, and whether being under its anchor means that it is reached.
//! - Anchors derive from the object alone, so what was put in is found again to be taken out.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{AccessSet, Anchors, Capacity, Claim, Labels, Name, Selector, Volume, VolumePhase};
use rustc_hash::FxHashMap;

use crate::PoolKey;
use crate::ranked::Ranked;

/// Things by their anchors, in their order.
#[derive(Debug)]
struct Anchored<T> {
    anywhere: BTreeSet<T>,
    /// By label, then by value. There are few labels: hosts, zones.
    at: Vec<(Name, FxHashMap<Name, BTreeSet<T>>)>,
}

impl<T> Default for Anchored<T> {
    fn default() -> Self {
        Anchored { anywhere: BTreeSet::new(), at: Vec::new() }
    }
}

impl<T: Ord + Clone> Anchored<T> {
    fn insert(&mut self, anchors: &Anchors<'_>, thing: &T) {
        match anchors {
            Anchors::Anywhere => {
                self.anywhere.replace(thing.clone());
            }
            Anchors::At(anchors) => {
                for (key, value) in anchors {
                    let place = self.at.iter().position(|(known, _)| known == *key).unwrap_or_else(|| {
                        self.at.push(((*key).clone(), FxHashMap::default()));
                        self.at.len() - 1
                    });
                    self.at[place].1.entry((*value).clone()).or_default().replace(thing.clone());
                }
            }
        }
    }

    fn remove(&mut self, anchors: &Anchors<'_>, thing: &T) {
        match anchors {
            Anchors::Anywhere => {
                self.anywhere.remove(thing);
            }
            Anchors::At(anchors) => {
                for (key, value) in anchors {
                    let Some((_, values)) = self.at.iter_mut().find(|(known, _)| known == *key) else { continue };
                    let Some(things) = values.get_mut(*value) else { continue };
                    things.remove(thing);
                    if things.is_empty() {
                        values.remove(*value);
                    }
                }
                self.at.retain(|(_, values)| !values.is_empty());
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.anywhere.is_empty() && self.at.is_empty()
    }

    /// All sets in which something may be that a node with these labels reaches.
    fn near(&self, labels: &Labels) -> impl Iterator<Item = &BTreeSet<T>> {
        let at = self.at.iter().filter_map(|(key, values)| values.get(labels.get(key)?));
        at.chain((!self.anywhere.is_empty()).then_some(&self.anywhere))
    }
}

/// The first thing that is accepted, in the order of all of them, given the first of each set.
fn first<'a, T: Ord + 'a>(found: impl Iterator<Item = Option<&'a T>>) -> Option<&'a T> {
    found.flatten().min()
}

/// What a claim looks for, in the form in which volumes are looked up by it. Made once for many nodes.
#[derive(Debug, Clone)]
pub struct VolumeRequirements {
    place: PoolKey,
    modes: AccessSet,
    least: Ranked,
}

impl VolumeRequirements {
    /// What a claim looks for.
    pub fn of(claim: &Claim) -> VolumeRequirements {
        let least = Ranked::least(claim.requested());
        VolumeRequirements { place: PoolKey::of_claim(claim), modes: claim.modes.set(), least }
    }
}

/// Volumes of one place, by their access modes.
type Groups = Vec<(AccessSet, Anchored<Ranked>)>;

/// Free volumes by place, then by access modes, then by where they can be reached from, then by capacity, then by name.
#[derive(Debug, Default)]
pub struct TopologyIndex {
    places: FxHashMap<PoolKey, Groups>,
}

impl TopologyIndex {
    /// Whether a volume is for pods that are being placed: free, and marked so.
    pub fn takes(volume: &Volume) -> bool {
        volume.is_free() && volume.phase == VolumePhase::Available
    }

    /// Puts a volume in, or in the place of what was known of it.
    pub fn insert(&mut self, volume: &Arc<Volume>) {
        debug_assert!(TopologyIndex::takes(volume), "only free volumes can be chosen");
        let groups = self.places.entry(PoolKey::of_volume(volume)).or_default();
        let modes = volume.modes.set();
        let at = groups.iter().position(|(known, _)| *known == modes).unwrap_or_else(|| {
            groups.push((modes, Anchored::default()));
            groups.len() - 1
        });
        groups[at].1.insert(&Anchors::of_nodes(volume.nodes.as_deref()), &Ranked::of(volume));
    }

    /// Takes a volume out, as it was put in.
    pub fn remove(&mut self, volume: &Arc<Volume>) {
        let place = PoolKey::of_volume(volume);
        let Some(groups) = self.places.get_mut(&place) else { return };
        let Some(at) = groups.iter().position(|(known, _)| *known == volume.modes.set()) else { return };
        groups[at].1.remove(&Anchors::of_nodes(volume.nodes.as_deref()), &Ranked::of(volume));
        if groups[at].1.is_empty() {
            groups.remove(at);
        }
        if groups.is_empty() {
            self.places.remove(&place);
        }
    }

    /// The volumes that a claim can have, but for their capacity and the node. Those that a selector does not want are left out
    /// once, for all nodes.
    pub fn candidates(&self, wish: &VolumeRequirements, selector: Option<&Selector>) -> Candidates<'_> {
        let groups = self.places.get(&wish.place).into_iter().flatten();
        let groups = groups.filter(|(modes, _)| modes.contains(wish.modes)).map(|(_, group)| group);
        match selector {
            None => Candidates(groups.map(Group::All).collect()),
            Some(selector) => Candidates(groups.map(|group| Group::Some(selected(group, selector))).collect()),
        }
    }
}

/// The volumes of a group that a selector wants.
fn selected(group: &Anchored<Ranked>, selector: &Selector) -> Anchored<Ranked> {
    let mut selected = Anchored::default();
    let all = group.at.iter().flat_map(|(_, values)| values.values()).chain([&group.anywhere]).flatten();
    for ranked in all.filter(|ranked| selector.matches(&ranked.volume.labels)) {
        selected.insert(&Anchors::of_nodes(ranked.volume.nodes.as_deref()), ranked);
    }
    selected
}

#[derive(Debug)]
enum Group<'a> {
    All(&'a Anchored<Ranked>),
    Some(Anchored<Ranked>),
}

/// Volumes that a claim can have, but for their capacity and the node.
#[derive(Debug)]
pub struct Candidates<'a>(Vec<Group<'a>>);

/// A volume that a node can reach.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a>(&'a Ranked);

impl<'a> Candidate<'a> {
    /// The volume.
    pub fn volume(self) -> &'a Arc<Volume> {
        &self.0.volume
    }

    /// How much it holds, in whole bytes, rounded up.
    pub fn bytes(self) -> i128 {
        self.0.bytes()
    }
}

/// Of the volumes that a claim can have those that a node may reach.
#[derive(Debug, Default)]
pub struct Near<'a>(Vec<&'a BTreeSet<Ranked>>);

impl Candidates<'_> {
    fn groups(&self) -> impl Iterator<Item = &Anchored<Ranked>> {
        self.0.iter().map(|group| match group {
            Group::All(group) => *group,
            Group::Some(group) => group,
        })
    }

    /// Whether these are the same as others, so that what is near a node is, too.
    pub fn are(&self, others: &Candidates<'_>) -> bool {
        self.0.len() == others.0.len() && self.groups().zip(others.groups()).all(|(a, b)| std::ptr::eq(a, b))
    }

    /// Those that a node with these labels may reach.
    pub fn near(&self, labels: &Labels) -> Near<'_> {
        Near(self.groups().flat_map(|group| group.near(labels)).collect())
    }
}

impl<'a> Near<'a> {
    /// The first volume that holds enough and can be reached from a node with these labels, but for those that were taken: the
    /// smallest, then the first by name.
    pub fn first(
        &self,
        wish: &VolumeRequirements,
        labels: &Labels,
        is_taken: impl Fn(&Arc<Volume>) -> bool,
    ) -> Option<Candidate<'a>> {
        let accept =
            |ranked: &&Ranked| (ranked.is_sure || ranked.volume.is_reachable(labels)) && !is_taken(&ranked.volume);
        first(self.0.iter().map(|volumes| volumes.range(&wish.least..).find(accept))).map(Candidate)
    }

    /// The largest volume that does not hold enough and can be reached from a node with these labels.
    pub fn largest_too_small(&self, wish: &VolumeRequirements, labels: &Labels) -> Option<Candidate<'a>> {
        let accept = |ranked: &&Ranked| ranked.is_sure || ranked.volume.is_reachable(labels);
        let found = self.0.iter().filter_map(|volumes| volumes.range(..&wish.least).rev().find(accept));
        found.max().map(Candidate)
    }
}

/// CapacityIndex in the order of keys, with what is needed of it to be chosen.
#[derive(Debug, Clone)]
struct Keyed {
    /// How large a volume can be, in whole bytes; nothing is said when there is none.
    limit_bytes: Option<i128>,
    /// Whether every node that has its anchor reaches it.
    is_sure: bool,
    capacity: Arc<Capacity>,
}

impl Keyed {
    fn of(capacity: &Arc<Capacity>) -> Keyed {
        let limit = capacity.limit().filter(|_| capacity.flaw.is_none());
        Keyed {
            limit_bytes: limit.map(|limit| limit.units()),
            is_sure: matches!(&capacity.nodes, Some(Ok(selector)) if selector.is_anchored()),
            capacity: capacity.clone(),
        }
    }

    fn key(&self) -> (&Name, &Name) {
        (&self.capacity.meta.namespace, &self.capacity.meta.name)
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Keyed {}

/// CapacityIndex for new volumes by class, then by who can reach it, then by key.
#[derive(Debug, Default)]
pub struct CapacityIndex {
    classes: FxHashMap<Name, Anchored<Keyed>>,
}

impl CapacityIndex {
    /// Puts it in, or in the place of what was known of it.
    pub fn insert(&mut self, capacity: &Arc<Capacity>) {
        let class = self.classes.entry(capacity.class.clone()).or_default();
        class.insert(&capacity.anchors(), &Keyed::of(capacity));
    }

    /// Takes it out, as it was put in.
    pub fn remove(&mut self, capacity: &Arc<Capacity>) {
        let Some(class) = self.classes.get_mut(&capacity.class) else { return };
        class.remove(&capacity.anchors(), &Keyed::of(capacity));
        if class.is_empty() {
            self.classes.remove(&capacity.class);
        }
    }

    /// The room for volumes of a class.
    pub fn of(&self, class: &Name) -> ClassCapacity<'_> {
        ClassCapacity(self.classes.get(class))
    }
}

/// CapacityIndex for volumes of one class.
#[derive(Debug, Clone, Copy)]
pub struct ClassCapacity<'a>(Option<&'a Anchored<Keyed>>);

impl<'a> ClassCapacity<'a> {
    /// The first by key that is for a node with these labels and has room for so many bytes.
    pub fn first(self, labels: &Labels, bytes: i128) -> Option<&'a Arc<Capacity>> {
        let takes = |keyed: &&Keyed| {
            keyed.limit_bytes.is_some_and(|limit| limit >= bytes) && (keyed.is_sure || keyed.capacity.is_for(labels))
        };
        let found = self.0?.near(labels).map(|room| room.iter().find(takes));
        first(found).map(|keyed| &keyed.capacity)
    }
}
