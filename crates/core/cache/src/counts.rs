//! Numbers of objects by what metrics distinguish, kept up to date with every change.

use std::hash::Hash;

use bindery_model::{Claim, ClaimPhase, Name, Source, Volume, VolumeMode, VolumePhase};
use rustc_hash::FxHashMap;

/// How many objects there are of each group. A group without objects is not in it.
#[derive(Debug, Clone)]
pub struct Counts<G>(FxHashMap<G, usize>);

impl<G> Default for Counts<G> {
    fn default() -> Self {
        Counts(FxHashMap::default())
    }
}

impl<G: Hash + Eq> Counts<G> {
    /// The groups and the number of objects in each, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&G, usize)> {
        self.0.iter().map(|(group, count)| (group, *count))
    }

    /// The number of objects in a group.
    pub fn of(&self, group: &G) -> usize {
        self.0.get(group).copied().unwrap_or_default()
    }

    /// Moves an object from one group to another; `None` while it does not exist.
    pub(crate) fn update(&mut self, before: Option<G>, after: Option<G>) {
        if before == after {
            return;
        }
        if let Some(before) = before
            && let Some(count) = self.0.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&before);
            }
        }
        if let Some(after) = after {
            *self.0.entry(after).or_default() += 1;
        }
    }
}

/// What volumes of one group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeGroup {
    /// The plugin that serves it.
    pub plugin: Plugin,
    /// The volume mode.
    pub volume_mode: VolumeMode,
    /// `spec.storageClassName`.
    pub class: Name,
    /// Whether its phase is Bound.
    pub is_bound: bool,
}

/// The plugin of a volume, as far as metrics distinguish it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// Host paths.
    HostPath,
    /// NFS.
    Nfs,
    /// A CSI driver.
    Csi(Name),
    /// Any other.
    Other,
}

impl VolumeGroup {
    pub(crate) fn of(volume: &Volume) -> VolumeGroup {
        let plugin = match &volume.source {
            Source::HostPath(_) => Plugin::HostPath,
            Source::Nfs(_) => Plugin::Nfs,
            Source::Csi(driver) => Plugin::Csi(driver.clone()),
            Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => Plugin::Other,
        };
        VolumeGroup {
            plugin,
            volume_mode: volume.volume_mode,
            class: volume.class_field.clone(),
            is_bound: volume.phase == VolumePhase::Bound,
        }
    }
}

/// What claims of one group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimGroup {
    /// The namespace.
    pub namespace: Name,
    /// The StorageClass; empty for none.
    pub class: Name,
    /// The VolumeAttributesClass; empty for none.
    pub attributes_class: Name,
    /// Whether its phase is Bound.
    pub is_bound: bool,
}

impl ClaimGroup {
    pub(crate) fn of(claim: &Claim) -> ClaimGroup {
        ClaimGroup {
            namespace: claim.meta.namespace.clone(),
            class: claim.class().clone(),
            attributes_class: claim.attributes().clone(),
            is_bound: claim.status.phase == ClaimPhase::Bound,
        }
    }
}
