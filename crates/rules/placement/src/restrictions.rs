//! Whether a pod's disks and claims can be used together with those of other pods (upstream's
//! VolumeRestrictions).

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{AccessMode, AccessModes, ClaimKey, Disk, Node, Pod, PodKey};

use crate::prepare::named_claims;
use crate::{ClaimRejection, NodeRejection, PodRejection};

/// What a pod must not share with other pods.
#[derive(Debug)]
pub struct Restrictions<'a> {
    disks: &'a [Disk],
    /// Its ReadWriteOncePod claims that another pod uses.
    used: Vec<ClaimKey>,
}

/// Reads what a pod must not share. Missing claims are added to `rejected`. Ephemeral volumes are
/// skipped, because only their own pod uses them.
pub fn prepare<'a>(cache: &Cache, pod: &'a Pod, rejected: &mut Vec<ClaimRejection>) -> Restrictions<'a> {
    let single_pod: AccessModes = [AccessMode::ReadWriteOncePod].into_iter().collect();
    let own = pod.key();
    let mut restrictions = Restrictions { disks: &pod.disks, used: Vec::new() };
    for key in named_claims(pod) {
        match cache.claim(&key) {
            None => rejected.push(ClaimRejection { why: PodRejection::ClaimMissing(key.name.clone()), claim: key }),
            Some(claim) => {
                let is_used =
                    claim.modes.set().contains(single_pod.set()) && other_users(cache, &key, &own).next().is_some();
                restrictions.used.extend(is_used.then_some(key));
            }
        }
    }
    restrictions
}

/// The other pods that use a claim and have a node, or a nominated one, and are not finished. Of
/// two pods that are only nominated, the first in the queue uses it.
pub fn other_users<'a>(cache: &'a Cache, claim: &ClaimKey, pod: &'a PodKey) -> impl Iterator<Item = &'a Arc<Pod>> {
    let is_nominated = |pod: &Pod| !pod.scheduling.nominated_node.is_empty();
    let own = cache.pod(pod);
    let precedes =
        move |other: &Pod| own.is_none_or(|own| !is_nominated(own) || other.queue_order() < own.queue_order());
    let others = cache.pods_using(claim).filter(move |other| other.key() != *pod && !other.is_finished());
    others.filter(move |other| !other.node.is_empty() || is_nominated(other) && precedes(other))
}

impl Restrictions<'_> {
    /// The rejection of a node, if it is not suitable.
    pub fn check(&self, cache: &Cache, node: &Node) -> Option<NodeRejection> {
        if self.pods_sharing_disks(cache, node).next().is_some() {
            return Some(NodeRejection::DiskInUse);
        }
        (!self.used.is_empty()).then_some(NodeRejection::ClaimInUse)
    }

    /// The pods on a node that use a disk which the pod must not share.
    pub fn pods_sharing_disks<'c>(&'c self, cache: &'c Cache, node: &'c Node) -> impl Iterator<Item = &'c Arc<Pod>> {
        let conflicts = |other: &&Arc<Pod>| {
            other.disks.iter().any(|theirs| self.disks.iter().any(|disk| disk.conflicts_with(theirs)))
        };
        let pods = (!self.disks.is_empty()).then(|| cache.pods_on(node.name()));
        pods.into_iter().flatten().filter(conflicts)
    }

    /// The pod's ReadWriteOncePod claims that another pod uses.
    pub fn used_claims(&self) -> &[ClaimKey] {
        &self.used
    }
}
