//! Whether a pod's volumes exceed the attach limits of a node's CSI drivers (upstream's
//! NodeVolumeLimits).

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_model::migration::driver_of;
use bindery_model::{Attacher, Attachment, Claim, ClaimKey, CsiNode, Disk, Name, Node, Pod};

use crate::NodeRejection;
use crate::migration::{csi_name, csi_name_inline};
use crate::prepare::claims_of;

/// A volume that counts against the limit of a driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CountedVolume {
    driver: Name,
    id: VolumeId,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum VolumeId {
    /// An existing volume.
    Handle(Name),
    /// A volume to be provisioned for a claim.
    Unprovisioned(ClaimKey),
}

/// The volumes of a pod that count against limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// On nodes without a CSINode, where in-tree plugins are not migrated.
    in_tree: BTreeSet<CountedVolume>,
    /// On all other nodes.
    csi: BTreeSet<CountedVolume>,
    /// The drivers that must be installed.
    required_drivers: BTreeSet<Name>,
}

/// Reads the volumes of a pod that count. Missing objects are not counted: other tests reject the
/// pod because of them.
pub fn prepare(cache: &Cache, pod: &Pod) -> Limits {
    let (in_tree, csi) = (counted(cache, pod, false), counted(cache, pod, true));
    let drivers = in_tree.iter().chain(&csi).map(|volume| &volume.driver);
    let is_required = |driver: &&Name| cache.driver(driver).is_some_and(|driver| driver.must_be_installed);
    let required_drivers = drivers.filter(is_required).cloned().collect();
    Limits { in_tree, csi, required_drivers }
}

/// The volumes of a pod that CSI drivers attach.
fn counted(cache: &Cache, pod: &Pod, is_migrated: bool) -> BTreeSet<CountedVolume> {
    let of_disk = |disk: &Disk| match disk {
        Disk::InTree { handle, .. } if is_migrated => {
            csi_name_inline(handle).map(|(driver, id)| CountedVolume { driver, id: VolumeId::Handle(id) })
        }
        Disk::InTree { .. } | Disk::Iscsi { .. } | Disk::Rbd { .. } => None,
    };
    let claims = claims_of(pod).filter_map(|(key, _)| of_claim(cache, cache.claim(&key)?, is_migrated));
    let is_known = |volume: &CountedVolume| !volume.driver.is_empty() && volume.id != VolumeId::Handle(Name::default());
    claims.chain(pod.disks.iter().filter_map(of_disk)).filter(is_known).collect()
}

/// The volume of a claim: the one that it is bound to, else the one to be provisioned.
fn of_claim(cache: &Cache, claim: &Claim, is_migrated: bool) -> Option<CountedVolume> {
    if let Some(volume) = claim.volume.as_ref().and_then(|name| cache.volume(name)) {
        let (driver, id) = csi_name(volume, is_migrated)?;
        return Some(CountedVolume { driver, id: VolumeId::Handle(id) });
    }
    let name = claim.class();
    let class = (!name.is_empty()).then(|| cache.class(name)).flatten()?;
    let driver = match driver_of(&class.provisioner) {
        // The name of a CSI driver has no slash. Volumes of other provisioners do not count.
        None if class.provisioner.contains('/') => return None,
        None => class.provisioner.clone(),
        Some(driver) if is_migrated && Attacher::is_migrated(&class.provisioner) => Name::new_static(driver),
        Some(_) => return None,
    };
    Some(CountedVolume { driver, id: VolumeId::Unprovisioned(claim.key()) })
}

impl Limits {
    /// The rejection of a node, if it is not suitable.
    pub fn check(&self, cache: &Cache, node: &Node) -> Option<NodeRejection> {
        if self.in_tree.is_empty() && self.csi.is_empty() {
            return None;
        }
        let csi = cache.csi_node(node.name());
        let new = if csi.is_some() { &self.csi } else { &self.in_tree };
        let is_missing = |driver: &Name| {
            self.required_drivers.contains(driver) && csi.is_none_or(|csi| csi.driver(driver).is_none())
        };
        if let Some(volume) = new.iter().find(|volume| is_missing(&volume.driver)) {
            return Some(NodeRejection::DriverMissing(volume.driver.clone()));
        }
        let is_limited = |volume: &CountedVolume| {
            csi.and_then(|csi| csi.driver(&volume.driver)).is_some_and(|driver| driver.volumes_max.is_some())
        };
        let csi = csi.filter(|_| new.iter().any(is_limited))?;
        is_full(cache, node, csi, new).then_some(NodeRejection::TooManyVolumes)
    }
}

/// Whether a node would exceed the limit of a driver with these volumes.
fn is_full(cache: &Cache, node: &Node, csi: &CsiNode, new: &BTreeSet<CountedVolume>) -> bool {
    let used: BTreeSet<CountedVolume> = cache.pods_on(node.name()).flat_map(|pod| counted(cache, pod, true)).collect();
    let attached = attached(cache, node);
    csi.drivers.iter().any(|driver| {
        let is_of_driver = |volume: &&CountedVolume| volume.driver == driver.name;
        let more = new.difference(&used).filter(is_of_driver).count();
        let has = used.iter().chain(attached.difference(&used)).filter(is_of_driver).count();
        let count = i64::try_from(has + more).unwrap_or(i64::MAX);
        more > 0 && driver.volumes_max.is_some_and(|max| count > max)
    })
}

/// The volumes with a VolumeAttachment for a node.
fn attached(cache: &Cache, node: &Node) -> BTreeSet<CountedVolume> {
    let volume = |attachment: &Attachment| {
        let volume = cache.volume(attachment.volume.as_ref()?)?;
        let handle = volume.handle.as_ref().filter(|handle| handle.by == Attacher::Csi)?;
        let driver = Some(attachment.attacher.clone()).filter(|driver| !driver.is_empty())?;
        Some(CountedVolume { driver, id: VolumeId::Handle(handle.id.clone()) })
    };
    cache.attachments_on(node.name()).filter_map(|attachment| volume(attachment)).collect()
}
