//! What every node is asked about a pod. Placing it and explaining why it is not placed ask the same questions here: the one stops
//! at the first that is against a node, the other hears all.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{Claim, Node, Pod, PodKey};
use bindery_placement::{Fault, Found, Obstacle, Placing, Prospect, Refusal, Refused, User, other_users};

use crate::fit;
use crate::neighbours::Neighbours;
use crate::reason::Reason;
use crate::spread::Evenness;

/// A pod that nodes are to be asked about.
pub struct Look<'a> {
    known: &'a Cache,
    pod: &'a Pod,
    placing: Placing<'a, Cache>,
    evenness: Evenness<'a>,
    neighbours: Neighbours,
}

/// What stands against a node, up to the first test that fails; and what it has for the pod's claims.
pub(crate) struct Answer<'a> {
    pub against: Vec<Reason>,
    pub found: Found<'a>,
}

/// All that there is to say of a node.
#[derive(Debug)]
pub struct Outlook<'a> {
    /// What it has for each of the pod's claims, but for those that keep the pod from every node.
    pub claims: Vec<(&'a Arc<Claim>, Prospect<'a>)>,
    /// What stands against it beside, by all tests.
    pub against: Vec<Reason>,
}

impl Outlook<'_> {
    /// Whether nothing stands against it.
    pub fn is_good(&self) -> bool {
        let has_nothing = |prospect: &Prospect<'_>| matches!(prospect, Prospect::Nothing(_));
        self.against.is_empty() && !self.claims.iter().any(|(_, prospect)| has_nothing(prospect))
    }
}

impl<'a> Look<'a> {
    /// Looks at a pod once, for all nodes: why it cannot be placed on any, if it cannot.
    pub(crate) fn at(known: &'a Cache, pod: &'a Pod) -> Result<Look<'a>, Refusal> {
        let placing = Placing::prepare(known, User::of(pod))?;
        Ok(Look::by(known, pod, placing))
    }

    /// The same, and goes on where claims keep the pod from every node: they are told of, the one that counts first.
    pub fn survey(known: &'a Cache, pod: &'a Pod) -> (Look<'a>, Vec<Refused>) {
        let (placing, refused) = Placing::survey(known, User::of(pod));
        (Look::by(known, pod, placing), refused)
    }

    fn by(known: &'a Cache, pod: &'a Pod, placing: Placing<'a, Cache>) -> Look<'a> {
        let (evenness, neighbours) = (Evenness::of(known, pod), Neighbours::of(known, pod));
        Look { known, pod, placing, evenness, neighbours }
    }

    /// Whether a node will do. The first test that has anything against it tells all that it has.
    pub(crate) fn ask(&self, node: &Node) -> Result<Answer<'_>, Fault> {
        let against = fit::before_volumes(self.known, self.pod, node);
        if !against.is_empty() {
            return Ok(Answer { against, found: Found::default() });
        }
        let mut found = self.placing.find(node)?;
        let mut against: Vec<Reason> = std::mem::take(&mut found.obstacles).into_iter().map(Reason::Volumes).collect();
        if against.is_empty() {
            against.extend(self.evenness.check(node).or_else(|| self.neighbours.check(node)));
        }
        Ok(Answer { against, found })
    }

    /// All that there is to say of a node, by the same tests.
    pub fn ask_all(&self, node: &Node) -> Result<Outlook<'_>, Fault> {
        let outlook = self.placing.outlook(node)?;
        let mut against = fit::all_before_volumes(self.known, self.pod, node);
        against.extend(outlook.beside.into_iter().map(Reason::Volumes));
        against.extend(self.evenness.check(node));
        against.extend(self.neighbours.check_all(node));
        let outlook = Outlook { claims: outlook.claims, against };
        debug_assert_eq!(
            self.ask(node).is_ok_and(|answer| answer.against.is_empty()),
            outlook.is_good(),
            "nothing stands against a node by one test after the other exactly when nothing does by all"
        );
        Ok(outlook)
    }

    /// Whether a pod could be placed on a node as things are.
    pub fn would_do(known: &Cache, pod: &Pod, node: &Node) -> bool {
        Look::at(known, pod).is_ok_and(|look| look.ask(node).is_ok_and(|answer| answer.against.is_empty()))
    }

    /// The pods whose being there is the reason against a node, where it is pods.
    pub fn in_the_way(&self, node: &Node, reason: &Reason) -> Vec<PodKey> {
        let keys = |pods: &mut dyn Iterator<Item = &PodKey>| pods.cloned().collect();
        match reason {
            Reason::PortTaken => keys(&mut fit::port_takers(self.known, self.pod, node)),
            Reason::NotApart => keys(&mut self.neighbours.not_apart(node).into_iter()),
            Reason::KeptApart => keys(&mut self.neighbours.keeping_apart(node).into_iter()),
            Reason::Volumes(Obstacle::DiskInUse) => {
                self.placing.restrictions().users_of_disks(self.known, node).map(|user| user.key()).collect()
            }
            Reason::Volumes(Obstacle::ClaimInUse) => {
                let own = self.pod.key();
                let used = self.placing.restrictions().used_claims().iter();
                used.flat_map(|claim| other_users(self.known, claim, &own)).map(|pod| pod.key()).collect()
            }
            Reason::Unschedulable
            | Reason::Tainted(_)
            | Reason::NotWanted { .. }
            | Reason::TooManyPods
            | Reason::Lacks(_)
            | Reason::NotNear
            | Reason::NoPlace(_)
            | Reason::Uneven(_)
            | Reason::Volumes(
                Obstacle::Unreachable
                | Obstacle::NothingToBind
                | Obstacle::NoRoom
                | Obstacle::VolumeMissing
                | Obstacle::OtherZone
                | Obstacle::TooManyVolumes
                | Obstacle::DriverMissing(_),
            ) => Vec::new(),
        }
    }
}
