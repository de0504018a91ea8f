//! Whether a pod's disks and claims can be used together with those of other pods.

use bindery_volumes::{AccessMode, AccessModes, Disk, Node};

use crate::{Obstacle, Refusal, User, View};

/// What a pod must not share.
#[derive(Debug)]
pub struct Restrictions<'a> {
    disks: &'a [Disk],
    /// Whether one of its claims is for one pod only, and has another user.
    is_claim_used: bool,
}

/// Finds out what a pod must not share; why it cannot be placed on any node, if it cannot. Ephemeral volumes are used by their
/// own pod only.
pub fn prepare<'a, V: View>(view: &V, pod: User<'a>) -> Result<Restrictions<'a>, Refusal> {
    let only_one: AccessModes = [AccessMode::ReadWriteOncePod].into_iter().collect();
    let mut restrictions = Restrictions { disks: pod.disks, is_claim_used: false };
    for key in pod.named_claims() {
        let Some(claim) = view.claim(&key) else { return Err(Refusal::ClaimMissing(key.name)) };
        restrictions.is_claim_used |= claim.modes.set().contains(only_one.set()) && view.is_used(&key, &pod.key());
    }
    Ok(restrictions)
}

impl Restrictions<'_> {
    /// Whether nothing can be against a node.
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty() && !self.is_claim_used
    }

    /// What is against a node, if anything is.
    pub fn check<V: View>(&self, view: &V, node: &Node) -> Option<Obstacle> {
        let conflicts =
            |user: User<'_>| user.disks.iter().any(|theirs| self.disks.iter().any(|disk| disk.conflicts_with(theirs)));
        if !self.disks.is_empty() && view.users_on(node.name()).any(conflicts) {
            return Some(Obstacle::DiskInUse);
        }
        self.is_claim_used.then_some(Obstacle::ClaimInUse)
    }
}
