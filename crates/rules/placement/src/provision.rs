//! Whether a volume can be provisioned for a claim so that a node can reach it.

use std::sync::Arc;

use bindery_cache::{Cache, ClassCapacity};
use bindery_model::{Claim, Class, Node};

use crate::{NewVolume, NodeRejection};

/// The provisioner of classes without dynamic provisioning.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// How a volume would be provisioned for a claim, as far as it does not depend on the node.
#[derive(Debug)]
pub(crate) struct ProvisionOption<'a> {
    claim: &'a Arc<Claim>,
    /// The class, if it has a provisioner.
    class: Option<&'a Class>,
    /// The capacities to search, and the requested bytes, if the driver publishes capacity.
    capacity: Option<(ClassCapacity<'a>, i128)>,
}

/// Why a volume cannot be provisioned for a claim so that a node can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotProvision {
    /// Its class has no provisioner.
    NoProvisioner,
    /// The allowed topologies of its class exclude the node.
    Topology,
    /// There is not enough capacity.
    Capacity,
}

impl CannotProvision {
    /// The rejection of the node that follows.
    pub fn rejection(self) -> NodeRejection {
        match self {
            CannotProvision::NoProvisioner | CannotProvision::Topology => NodeRejection::NoMatchingVolume,
            CannotProvision::Capacity => NodeRejection::InsufficientCapacity,
        }
    }
}

impl<'a> ProvisionOption<'a> {
    pub fn of(cache: &'a Cache, claim: &'a Arc<Claim>) -> ProvisionOption<'a> {
        let has_provisioner =
            |class: &&Arc<Class>| !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER;
        let class = cache.class(claim.class()).filter(has_provisioner);
        let capacity = class.and_then(|class| {
            cache.driver(&class.provisioner).filter(|driver| driver.reports_capacity)?;
            Some((cache.capacity_index().of(&class.meta.name), claim.request.as_ref()?.units()))
        });
        ProvisionOption { claim, class: class.map(|class| &**class), capacity }
    }

    /// The volume that can be provisioned for a node; else why none can.
    pub fn on(&self, node: &Node) -> Result<NewVolume<'a>, CannotProvision> {
        let class = self.class.ok_or(CannotProvision::NoProvisioner)?;
        if !class.topologies.allow(&node.labels) {
            return Err(CannotProvision::Topology);
        }
        let capacity = match self.capacity {
            Some((capacity, bytes)) => Some(capacity.first(&node.labels, bytes).ok_or(CannotProvision::Capacity)?),
            None => None,
        };
        Ok(NewVolume { claim: self.claim, capacity })
    }
}
