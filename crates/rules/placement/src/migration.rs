//! CSI migration: where a volume of an in-tree plugin is, once a CSI driver has taken over on a node, and what it is called then.

use std::collections::BTreeSet;

use bindery_model::migration::{BETA_REGION, BETA_ZONE, Plugin, REGION, ZONE, ZONE_DELIMITER, csi_id, driver_of};
use bindery_model::{Attacher, CsiNode, Handle, Name, Node, NodeSelector, Requirement, Source, Volume};

use crate::Fault;

/// Labels that say in which zone or region something is; the older ones first.
pub(crate) const TOPOLOGY: [&str; 4] = [BETA_ZONE, BETA_REGION, ZONE, REGION];

/// The newer form of a label that says in which zone or region something is.
pub(crate) fn newer(label: &str) -> &str {
    match label {
        BETA_ZONE => ZONE,
        BETA_REGION => REGION,
        label => label,
    }
}

/// Where a volume can be reached from, on nodes where its plugin is as it was and on those where a CSI driver has taken over.
#[derive(Debug)]
pub(crate) struct Whereabouts<'a> {
    volume: &'a Volume,
    /// The plugin, and what the driver makes of it.
    moved: Option<(&'static str, Result<Option<NodeSelector>, String>)>,
}

impl<'a> Whereabouts<'a> {
    pub fn of(volume: &'a Volume) -> Whereabouts<'a> {
        let plugin = volume.handle.as_ref().and_then(|handle| handle.by.plugin());
        Whereabouts { volume, moved: plugin.map(|plugin| (plugin, translated(volume))) }
    }

    /// Whether the volume can be reached from a node; in upstream's words why not. `csi` is what CSI drivers can do there.
    pub fn check<'c>(
        &self,
        node: &Node,
        csi: impl FnOnce() -> Option<&'c CsiNode>,
    ) -> Result<Result<(), String>, Fault> {
        let nodes = match &self.moved {
            Some((plugin, moved)) if csi().is_some_and(|csi| csi.has_migrated(plugin)) => {
                moved.as_ref().map_err(|problem| Fault::Translation(problem.clone()))?.as_ref()
            }
            Some(_) | None => self.volume.nodes.as_deref(),
        };
        Ok(nodes.map_or(Ok(()), |nodes| nodes.check(&node.labels, None)))
    }
}

/// The label that a driver gives nodes to say in which zone they are. Of Azure's and Portworx' volumes nothing is translated.
fn zone_key(attacher: Attacher) -> Option<&'static str> {
    match attacher {
        Attacher::AwsEbs => Plugin::AwsEbs.zone_key(),
        Attacher::GcePd => Plugin::GcePd.zone_key(),
        Attacher::Cinder => Plugin::Cinder.zone_key(),
        Attacher::AzureDisk | Attacher::AzureBlob | Attacher::Portworx | Attacher::Csi => None,
    }
}

/// Where a volume can be reached from once its driver has taken over; why that cannot be said, otherwise.
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

/// The labels that the volume's zone and region go by: the newer ones, unless only the older zone is known.
fn zone_and_region(volume: &Volume) -> (&'static str, &'static str) {
    let named = |key: &str| {
        let nodes = volume.nodes.as_deref();
        nodes.into_iter().flat_map(NodeSelector::requirements).any(|requirement| *requirement.key() == key)
    };
    let labelled = |key: &str| volume.labels.get(key).is_some();
    let older = if named(ZONE) {
        false
    } else if named(BETA_ZONE) {
        true
    } else {
        !labelled(ZONE) && labelled(BETA_ZONE)
    };
    if older { (BETA_ZONE, BETA_REGION) } else { (ZONE, REGION) }
}

/// The demand for the zones that a label lists.
fn zones_requirement(key: &'static str, label: &str) -> Option<Requirement> {
    let zones: BTreeSet<&str> = label.split(ZONE_DELIMITER).map(str::trim).filter(|zone| !zone.is_empty()).collect();
    Requirement::of_labels(Name::new_static(key), "In", zones.into_iter().map(Name::from).collect()).ok()
}

/// The driver that attaches a volume, and its name for it. `is_migrated` says whether drivers have taken over.
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

/// The driver that attaches a disk that a pod names itself, and its name for it.
pub(crate) fn csi_name_inline(handle: &Handle) -> Option<(Name, Name)> {
    let driver = Name::new_static(driver_of(handle.by.plugin()?)?);
    Some((driver, csi_id(handle, &Volume::default()).ok()?))
}
