//! Whether a volume can be made for a claim where a node can reach it.

use std::sync::Arc;

use bindery_volumes::{Capacity, Claim, Class, Node, Quantity};

use crate::{Obstacle, Provision, View};

/// The provisioner of classes whose volumes nobody makes.
const NOBODY: &str = "kubernetes.io/no-provisioner";

/// How a volume would be made for a claim, as far as it does not depend on the node.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    claim: &'a Arc<Claim>,
    maker: Maker<'a>,
}

/// Who would make it.
#[derive(Debug)]
enum Maker<'a> {
    Nobody,
    Class {
        class: &'a Class,
        /// How much room it takes, where its driver says how much there is.
        room: Option<&'a Quantity>,
    },
}

impl<'a> Making<'a> {
    pub fn of<V: View>(view: &'a V, claim: &'a Arc<Claim>) -> Making<'a> {
        let maker = |class: &'a Arc<Class>| {
            let provisioner = &class.provisioner;
            if provisioner.is_empty() || provisioner == NOBODY {
                return Maker::Nobody;
            }
            let tells = view.driver(provisioner).is_some_and(|driver| driver.tells_capacity);
            Maker::Class { class, room: claim.request.as_ref().filter(|_| tells) }
        };
        // A claim is delayed by its class, so there is one.
        Making { claim, maker: view.class(claim.class()).map_or(Maker::Nobody, maker) }
    }

    /// Whether it can be made for a node, and where there is room for it; what stands against it, otherwise.
    pub fn on<V: View>(&self, view: &'a V, node: &Node) -> Result<Provision<'a>, Obstacle> {
        let (class, room) = match &self.maker {
            Maker::Nobody => return Err(Obstacle::NothingToBind),
            Maker::Class { class, room } => (class, room),
        };
        if !class.topologies.allow(&node.labels) {
            return Err(Obstacle::NothingToBind);
        }
        let Some(size) = room else { return Ok(Provision { claim: self.claim, room: None }) };
        let has_room = |capacity: &Capacity| capacity.flaw.is_none() && capacity.holds(size);
        let found = view.room().first(&class.meta.name, &node.labels, has_room);
        found.map(|found| Provision { claim: self.claim, room: Some(found) }).ok_or(Obstacle::NoRoom)
    }
}
