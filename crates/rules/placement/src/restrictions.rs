//! Whether a pod's disks and claims can be used together with those of other pods.

use bindery_model::{AccessMode, AccessModes, ClaimKey, Disk, Node};

use crate::prepare::first;
use crate::{Obstacle, Refusal, Refused, User, View};

/// What a pod must not share.
#[derive(Debug)]
pub struct Restrictions<'a> {
    disks: &'a [Disk],
    /// Its claims that are for one pod only, and have another user.
    used: Vec<ClaimKey>,
}

/// Finds out what a pod must not share; why it cannot be placed on any node, if it cannot. Ephemeral volumes are used by their
/// own pod only.
pub fn prepare<'a, V: View>(view: &V, pod: User<'a>) -> Result<Restrictions<'a>, Refusal> {
    let mut refused = Vec::new();
    let restrictions = survey(view, pod, &mut refused);
    first(refused).map_or(Ok(restrictions), Err)
}

/// Finds out what a pod must not share. Claims that keep it from every node are told of, and left out.
pub(crate) fn survey<'a, V: View>(view: &V, pod: User<'a>, refused: &mut Vec<Refused>) -> Restrictions<'a> {
    let only_one: AccessModes = [AccessMode::ReadWriteOncePod].into_iter().collect();
    let mut restrictions = Restrictions { disks: pod.disks, used: Vec::new() };
    for key in pod.named_claims() {
        match view.claim(&key) {
            None => refused.push(Refused { why: Refusal::ClaimMissing(key.name.clone()), claim: key }),
            Some(claim) if claim.modes.set().contains(only_one.set()) && view.is_used(&key, &pod.key()) => {
                restrictions.used.push(key);
            }
            Some(_) => {}
        }
    }
    restrictions
}

impl Restrictions<'_> {
    /// Whether nothing can be against a node.
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty() && self.used.is_empty()
    }

    /// What is against a node, if anything is.
    pub fn check<V: View>(&self, view: &V, node: &Node) -> Option<Obstacle> {
        if self.users_of_disks(view, node).next().is_some() {
            return Some(Obstacle::DiskInUse);
        }
        (!self.used.is_empty()).then_some(Obstacle::ClaimInUse)
    }

    /// The pods on a node that use a disk which the pod must not share.
    pub fn users_of_disks<'v, V: View>(&'v self, view: &'v V, node: &Node) -> impl Iterator<Item = User<'v>> {
        let conflicts =
            |user: &User<'_>| user.disks.iter().any(|theirs| self.disks.iter().any(|disk| disk.conflicts_with(theirs)));
        let users = (!self.disks.is_empty()).then(|| view.users_on(node.name()));
        users.into_iter().flatten().filter(conflicts)
    }

    /// The pod's claims that are for one pod only, and have another user.
    pub fn used_claims(&self) -> &[ClaimKey] {
        &self.used
    }
}
