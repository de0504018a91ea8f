//! Whether a volume can be made for a claim where a node can reach it.

use std::sync::Arc;

use bindery_cache::ClassCapacity;
use bindery_model::{Claim, Class, Node};

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
    NoObserver,
    Class {
        class: &'a Class,
        /// Where to look for room, and for how many bytes, where its driver says how much there is.
        room: Option<(ClassCapacity<'a>, i128)>,
    },
}

/// Why a volume cannot be made for a claim where a node can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmade {
    /// Its class makes none.
    NoMaker,
    /// Its class makes none there.
    Topology,
    /// There is no room for it.
    NoRoom,
}

impl Unmade {
    /// What that is of the reasons against a node.
    pub fn obstacle(self) -> Obstacle {
        match self {
            Unmade::NoMaker | Unmade::Topology => Obstacle::NothingToBind,
            Unmade::NoRoom => Obstacle::NoRoom,
        }
    }
}

impl<'a> Making<'a> {
    pub fn of<V: View>(view: &'a V, claim: &'a Arc<Claim>) -> Making<'a> {
        let maker = |class: &'a Arc<Class>| {
            let provisioner = &class.provisioner;
            if provisioner.is_empty() || provisioner == NOBODY {
                return Maker::NoObserver;
            }
            let tells = view.driver(provisioner).is_some_and(|driver| driver.tells_capacity);
            let size = claim.request.as_ref().filter(|_| tells);
            Maker::Class { class, room: size.map(|size| (view.room().of(&class.meta.name), size.units())) }
        };
        // A claim is delayed by its class, so there is one.
        Making { claim, maker: view.class(claim.class()).map_or(Maker::NoObserver, maker) }
    }

    /// Whether it can be made for a node, and where there is room for it; what stands against it, otherwise.
    pub fn on(&self, node: &Node) -> Result<Provision<'a>, Unmade> {
        let Maker::Class { class, room } = &self.maker else { return Err(Unmade::NoMaker) };
        if !class.topologies.allow(&node.labels) {
            return Err(Unmade::Topology);
        }
        let Some((room, bytes)) = room else { return Ok(Provision { claim: self.claim, room: None }) };
        let found = room.first(&node.labels, *bytes).ok_or(Unmade::NoRoom)?;
        Ok(Provision { claim: self.claim, room: Some(found) })
    }
}
