//! Whether a node can have as many volumes of a CSI driver as it would have with a pod.

use std::collections::BTreeSet;

use bindery_model::migration::driver_of;
use bindery_model::{Attacher, Attachment, Claim, ClaimKey, CsiNode, Disk, Name, Node};

use crate::migration::{csi_name, csi_name_inline};
use crate::{Obstacle, User, View};

/// A volume, as a driver tells it from its others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    driver: Name,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// A volume that exists, by the driver's name for it.
    Handle(Name),
    /// A volume that is to be made for a claim.
    Future(ClaimKey),
}

/// The volumes that a pod brings along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// On nodes of which nothing is known of CSI drivers: in-tree plugins do their own work there.
    plain: BTreeSet<Unit>,
    /// On all others.
    csi: BTreeSet<Unit>,
    /// Of their drivers, those that must be installed.
    needed: BTreeSet<Name>,
}

/// Finds out what volumes a pod brings along. What cannot be found is not counted: the pod is refused for that elsewhere.
pub fn prepare<V: View>(view: &V, pod: User<'_>) -> Limits {
    let (plain, csi) = (units(view, pod, false), units(view, pod, true));
    let drivers = plain.iter().chain(&csi).map(|unit| &unit.driver);
    let is_needed = |driver: &&Name| view.driver(driver).is_some_and(|driver| driver.must_be_installed);
    let needed = drivers.filter(is_needed).cloned().collect();
    Limits { plain, csi, needed }
}

/// The volumes of a pod that drivers attach. What cannot be found is not counted.
fn units<V: View>(view: &V, pod: User<'_>, is_migrated: bool) -> BTreeSet<Unit> {
    let of_disk = |disk: &Disk| match disk {
        Disk::InTree { handle, .. } if is_migrated => {
            csi_name_inline(handle).map(|(driver, id)| Unit { driver, which: Which::Handle(id) })
        }
        Disk::InTree { .. } | Disk::Iscsi { .. } | Disk::Rbd { .. } => None,
    };
    let claims = pod.claims().filter_map(|(key, _)| unit_of(view, view.claim(&key)?, is_migrated));
    let is_known = |unit: &Unit| !unit.driver.is_empty() && unit.which != Which::Handle(Name::default());
    claims.chain(pod.disks.iter().filter_map(of_disk)).filter(is_known).collect()
}

/// The volume of a claim: the one that it is bound to, else the one that its class would make.
fn unit_of<V: View>(view: &V, claim: &Claim, is_migrated: bool) -> Option<Unit> {
    if let Some(volume) = claim.volume.as_ref().and_then(|name| view.volume(name)) {
        let (driver, id) = csi_name(volume, is_migrated)?;
        return Some(Unit { driver, which: Which::Handle(id) });
    }
    let name = claim.class();
    let class = (!name.is_empty()).then(|| view.class(name)).flatten()?;
    let driver = match driver_of(&class.provisioner) {
        // Names of CSI drivers have no slash: volumes of the others are not counted anywhere.
        None if class.provisioner.contains('/') => return None,
        None => class.provisioner.clone(),
        Some(driver) if is_migrated && Attacher::is_migrated(&class.provisioner) => Name::new_static(driver),
        Some(_) => return None,
    };
    Some(Unit { driver, which: Which::Future(claim.key()) })
}

impl Limits {
    /// Whether nothing can be against a node.
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.csi.is_empty()
    }

    /// What is against a node, if anything is.
    pub fn check<V: View>(&self, view: &V, node: &Node) -> Option<Obstacle> {
        if self.is_empty() {
            return None;
        }
        let csi = view.csi_node(node.name());
        let new = if csi.is_some() { &self.csi } else { &self.plain };
        let is_missing =
            |driver: &Name| self.needed.contains(driver) && csi.is_none_or(|csi| csi.driver(driver).is_none());
        if let Some(unit) = new.iter().find(|unit| is_missing(&unit.driver)) {
            return Some(Obstacle::DriverMissing(unit.driver.clone()));
        }
        let is_limited = |unit: &Unit| {
            csi.and_then(|csi| csi.driver(&unit.driver)).is_some_and(|driver| driver.volumes_max.is_some())
        };
        let csi = csi.filter(|_| new.iter().any(is_limited))?;
        is_full(view, node, csi, new).then_some(Obstacle::TooManyVolumes)
    }
}

/// Whether a node would have too many volumes of a driver with these.
fn is_full<V: View>(view: &V, node: &Node, csi: &CsiNode, new: &BTreeSet<Unit>) -> bool {
    let used: BTreeSet<Unit> = view.users_on(node.name()).flat_map(|user| units(view, user, true)).collect();
    let attached = attached(view, node);
    csi.drivers.iter().any(|driver| {
        let is_its = |unit: &&Unit| unit.driver == driver.name;
        let more = new.difference(&used).filter(is_its).count();
        let has = used.iter().chain(attached.difference(&used)).filter(is_its).count();
        let count = i64::try_from(has + more).unwrap_or(i64::MAX);
        more > 0 && driver.volumes_max.is_some_and(|max| count > max)
    })
}

/// The volumes that are attached to a node, or are to be.
fn attached<V: View>(view: &V, node: &Node) -> BTreeSet<Unit> {
    let unit = |attachment: &Attachment| {
        let volume = view.volume(attachment.volume.as_ref()?)?;
        let handle = volume.handle.as_ref().filter(|handle| handle.by == Attacher::Csi)?;
        let driver = Some(attachment.attacher.clone()).filter(|driver| !driver.is_empty())?;
        Some(Unit { driver, which: Which::Handle(handle.id.clone()) })
    };
    view.attachments(node.name()).filter_map(|attachment| unit(attachment)).collect()
}
