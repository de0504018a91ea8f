//! What a node can reach: free volumes, and room for new ones, by the labels of nodes.
//!
//! A pod is placed by asking many nodes the same question, so no node may look at what it cannot reach. Everything here is kept
//! under anchors: a label and a value that every node has which can reach it ([`Anchors`]). A node looks under its own labels,
//! and at what could not be anchored.
//!
//! Invariants:
//! - What a node can reach is under one of the node's labels, or anywhere. (What is there need not be reachable: whoever looks
//!   tests that for the very candidate.)
//! - Under every anchor things are in the order in which they are chosen: volumes by capacity, then name; room by key. So the
//!   first that passes under each anchor is enough, and the first of those is the first of all.
//! - Anchors derive from the object alone, so what was put in is found again to be taken out.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_volumes::{Anchors, Capacity, Labels, Name, Quantity, Volume};
use rustc_hash::FxHashMap;

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

/// A volume in the order in which volumes are chosen: the smallest first, then the first by name.
#[derive(Debug, Clone)]
struct Ranked(Arc<Volume>);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |ranked: &Ranked| ranked.0.holds().nanos();
        size(self).cmp(&size(other)).then_with(|| self.0.name().cmp(other.0.name()))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

/// The least that a volume must hold, in the form in which volumes are looked up by it. Made once for many nodes.
#[derive(Debug, Clone)]
pub struct Least(Ranked);

impl Least {
    /// At least that much.
    pub fn of(size: &Quantity) -> Least {
        // It comes before all volumes of its size, because none has an empty name.
        Least(Ranked(Arc::new(Volume { capacity: Some(size.clone()), ..Volume::default() })))
    }
}

/// Free volumes by class, then by where they can be reached from, then by capacity, then by name.
#[derive(Debug, Default)]
pub struct Reach {
    classes: FxHashMap<Name, Anchored<Ranked>>,
}

impl Reach {
    /// Puts a volume in, or in the place of what was known of it.
    pub fn insert(&mut self, volume: &Arc<Volume>) {
        let anchors = Anchors::of_nodes(volume.nodes.as_deref());
        self.classes.entry(volume.class().clone()).or_default().insert(&anchors, &Ranked(volume.clone()));
    }

    /// Takes a volume out, as it was put in.
    pub fn remove(&mut self, volume: &Arc<Volume>) {
        let Some(class) = self.classes.get_mut(volume.class()) else { return };
        class.remove(&Anchors::of_nodes(volume.nodes.as_deref()), &Ranked(volume.clone()));
        if class.is_empty() {
            self.classes.remove(volume.class());
        }
    }

    /// The first volume of a class that holds enough, and that is acceptable, of those that a node with these labels may reach:
    /// the smallest, then the first by name.
    pub fn first(
        &self,
        class: &Name,
        labels: &Labels,
        least: &Least,
        accept: impl Fn(&Volume) -> bool,
    ) -> Option<&Arc<Volume>> {
        let class = self.classes.get(class)?;
        let found = class.near(labels).map(|volumes| volumes.range(&least.0..).find(|volume| accept(&volume.0)));
        first(found).map(|ranked| &ranked.0)
    }
}

/// Room in the order of keys.
#[derive(Debug, Clone)]
struct Keyed(Arc<Capacity>);

impl Keyed {
    fn key(&self) -> (&Name, &Name) {
        (&self.0.meta.namespace, &self.0.meta.name)
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

/// Room for new volumes by class, then by who can reach it, then by key.
#[derive(Debug, Default)]
pub struct Room {
    classes: FxHashMap<Name, Anchored<Keyed>>,
}

impl Room {
    /// Puts it in, or in the place of what was known of it.
    pub fn insert(&mut self, capacity: &Arc<Capacity>) {
        let class = self.classes.entry(capacity.class.clone()).or_default();
        class.insert(&capacity.anchors(), &Keyed(capacity.clone()));
    }

    /// Takes it out, as it was put in.
    pub fn remove(&mut self, capacity: &Arc<Capacity>) {
        let Some(class) = self.classes.get_mut(&capacity.class) else { return };
        class.remove(&capacity.anchors(), &Keyed(capacity.clone()));
        if class.is_empty() {
            self.classes.remove(&capacity.class);
        }
    }

    /// The first by key, of a class, that is acceptable and for a node with these labels.
    pub fn first(&self, class: &Name, labels: &Labels, accept: impl Fn(&Capacity) -> bool) -> Option<&Arc<Capacity>> {
        let class = self.classes.get(class)?;
        let takes = |capacity: &Capacity| accept(capacity) && capacity.is_for(labels);
        let found = class.near(labels).map(|room| room.iter().find(|capacity| takes(&capacity.0)));
        first(found).map(|keyed| &keyed.0)
    }
}
