//! CSI migration: the topology and the ID of in-tree volumes on nodes where their plugin is
//! migrated.

use std::collections::BTreeSet;

use bindery_model::migration::{BETA_REGION, BETA_ZONE, Plugin, REGION, ZONE, ZONE_DELIMITER, csi_id, driver_of};
use bindery_model::{Attacher, CsiNode, Handle, Name, Node, NodeSelector, Requirement, Source, Volume};

use crate::PlacementError;

/// The labels of zones and regions; the beta ones first.
pub(crate) const TOPOLOGY_LABELS: [&str; 4] = [BETA_ZONE, BETA_REGION, ZONE, REGION];

/// The stable form of a zone or region label.
pub(crate) fn current_label(label: &str) -> &str {
    match label {
        BETA_ZONE => ZONE,
        BETA_REGION => REGION,
        label => label,
    }
}

/// The nodes that can reach a volume, where its plugin is migrated to CSI and where it is not.
#[derive(Debug)]
pub(crate) struct VolumeTopology<'a> {
    volume: &'a Volume,
    /// The in-tree plugin, and the translated node affinity.
    migrated: Option<(&'static str, Result<Option<NodeSelector>, String>)>,
}

impl<'a> VolumeTopology<'a> {
    pub fn of(volume: &'a Volume) -> VolumeTopology<'a> {
        let plugin = volume.handle.as_ref().and_then(|handle| handle.by.plugin());
        VolumeTopology { volume, migrated: plugin.map(|plugin| (plugin, translated(volume))) }
    }

    /// Whether a node with that CSINode can reach the volume; if not, upstream's error.
    pub fn check<'c>(
        &self,
        node: &Node,
        csi: impl FnOnce() -> Option<&'c CsiNode>,
    ) -> Result<Result<(), String>, PlacementError> {
        let nodes = match &self.migrated {
            Some((plugin, migrated)) if csi().is_some_and(|csi| csi.has_migrated(plugin)) => {
                migrated.as_ref().map_err(|problem| PlacementError::Translation(problem.clone()))?.as_ref()
            }
            Some(_) | None => self.volume.nodes.as_deref(),
        };
        Ok(nodes.map_or(Ok(()), |nodes| nodes.check(&node.labels, None)))
    }
}

/// The zone label of a driver. The topology of Azure and Portworx volumes is not translated.
fn zone_key(attacher: Attacher) -> Option<&'static str> {
    match attacher {
        Attacher::AwsEbs => Plugin::AwsEbs.zone_key(),
        Attacher::GcePd => Plugin::GcePd.zone_key(),
        Attacher::Cinder => Plugin::Cinder.zone_key(),
        Attacher::AzureDisk | Attacher::AzureBlob | Attacher::Portworx | Attacher::Csi => None,
    }
}

/// The node affinity of a volume on nodes where its plugin is migrated; an error if it cannot be
/// translated.
fn translated(volume: &Volume) -> Result<Option<NodeSelector>, String> {
    let Some(handle) = &volume.handle else { return Ok(volume.nodes.as_deref().cloned()) };
    csi_id(handle, volume)?;
    let nodes = volume.nodes.as_deref();
    let Some(key) = zone_key(handle.by) else { return Ok(nodes.cloned()) };
    let (zone, region) = zone_and_region(volume);
    let has_values = |key: &str| {
        let requirements = nodes.into_iter().flat_map(NodeSelector::requirements);
        requirements.filter(|r| *r.key() == key).any(|r| !r.values().is_empty())
    };
    let is_named = has_values(zone);
    let label = (!is_named).then(|| volume.labels.get(zone)).flatten().and_then(|label| zones_requirement(key, label));
    let renames_region = region == BETA_REGION && has_values(BETA_REGION);
    let change = |requirement: &Requirement| match requirement.key() {
        known if is_named && *known == zone => requirement.renamed(Name::new_static(key)),
        known if renames_region && *known == BETA_REGION => requirement.renamed(Name::new_static(REGION)),
        _ => requirement.clone(),
    };
    Ok(match (nodes, label) {
        (Some(nodes), label) if !nodes.is_empty() => Some(nodes.translated(change, label.as_ref())),
        (_, Some(label)) => Some(NodeSelector::all_of(vec![label])),
        (nodes, None) => nodes.cloned(),
    })
}

/// The labels of the volume's zone and region: the stable ones, unless only the beta zone is set.
fn zone_and_region(volume: &Volume) -> (&'static str, &'static str) {
    let named = |key: &str| {
        let nodes = volume.nodes.as_deref();
        nodes.into_iter().flat_map(NodeSelector::requirements).any(|requirement| *requirement.key() == key)
    };
    let labelled = |key: &str| volume.labels.get(key).is_some();
    let is_beta = if named(ZONE) {
        false
    } else if named(BETA_ZONE) {
        true
    } else {
        !labelled(ZONE) && labelled(BETA_ZONE)
    };
    if is_beta { (BETA_ZONE, BETA_REGION) } else { (ZONE, REGION) }
}

/// The requirement for the zones in a label.
fn zones_requirement(key: &'static str, label: &str) -> Option<Requirement> {
    let zones: BTreeSet<&str> = label.split(ZONE_DELIMITER).map(str::trim).filter(|zone| !zone.is_empty()).collect();
    Requirement::of_labels(Name::new_static(key), "In", zones.into_iter().map(Name::from).collect()).ok()
}

/// The driver that attaches a volume, and the volume handle. In-tree volumes have one if migrated.
pub(crate) fn csi_name(volume: &Volume, is_migrated: bool) -> Option<(Name, Name)> {
    let handle = volume.handle.as_ref()?;
    match (handle.by.plugin(), &volume.source) {
        (None, Source::Csi(driver)) => Some((driver.clone(), handle.id.clone())),
        (
            None,
            Source::HostPath(_)
            | Source::Nfs(_)
            | Source::Migrated(_)
            | Source::Flex(_)
            | Source::Local(_)
            | Source::Other,
        ) => None,
        (Some(_), _) if !is_migrated => None,
        (Some(plugin), _) => Some((Name::new_static(driver_of(plugin)?), csi_id(handle, volume).ok()?)),
    }
}

/// The driver that attaches an inline disk, and the volume handle.
pub(crate) fn csi_name_inline(handle: &Handle) -> Option<(Name, Name)> {
    let driver = Name::new_static(driver_of(handle.by.plugin()?)?);
    Some((driver, csi_id(handle, &Volume::default()).ok()?))
}
