//! How a provisioner is set up.

use std::hash::{BuildHasher, Hasher, RandomState};

use bindery_model::{Claim, Labels, Name, Volume};

/// Which provisioner it is, and what its storage can do.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its name: claims and classes ask for it by that.
    pub name: Name,
    /// Other names that it answers to.
    pub also: Vec<Name>,
    /// What tells this instance from all others that ever were.
    pub instance: Name,
    /// Who its events say that they are from.
    pub component: &'static str,
    /// Whether it makes volumes for claims, and does not only remove what lies behind some.
    pub makes_volumes: bool,
    /// Whether its volumes are guarded by a finalizer until what lies behind them is removed.
    pub guards_volumes: bool,
    /// Whether its storage can be had as a block device.
    pub makes_blocks: bool,
    /// Whether volumes are attached to nodes, so that none is removed while it is.
    pub attaches: bool,
    /// Whether claims are filled from other claims, which are guarded meanwhile.
    pub clones: bool,
    /// What the names of volumes begin with.
    pub prefix: Name,
    /// How many characters of a claim's UID they end in; `None` for all of it.
    pub uid_length: Option<usize>,
    /// How it deals with places, where the storage knows any.
    pub topology: Option<TopologyConfig>,
    /// The node that it makes and removes volumes for, where there is a provisioner on each.
    pub node: Option<OwnNode>,
}

/// The one node that a provisioner is for.
#[derive(Debug, Clone)]
pub struct OwnNode {
    /// Its name.
    pub name: Name,
    /// Where it is, in the storage's own words. Volumes that are not reachable from there are others' to look after.
    pub place: Labels,
}

/// How a provisioner deals with places.
#[derive(Debug, Clone, Copy)]
pub struct TopologyConfig {
    /// Whether a volume is to be reachable from just the node that was chosen.
    pub strict: bool,
    /// Whether places are asked for where no node was chosen.
    pub immediate: bool,
}

/// A name that nobody else has. It is chosen once, before anything is decided.
fn any_name() -> Name {
    format!("{:016x}", RandomState::new().build_hasher().finish()).into()
}

impl Config {
    /// A provisioner of that name, whose storage can do nothing special.
    pub fn new(name: impl Into<Name>) -> Config {
        let name = name.into();
        Config {
            // There is one a process, for as long as it runs.
            component: String::leak(name.to_string()),
            name,
            also: Vec::new(),
            instance: any_name(),
            makes_volumes: true,
            guards_volumes: true,
            makes_blocks: false,
            attaches: false,
            clones: false,
            prefix: Name::new_static("pvc"),
            uid_length: None,
            topology: None,
            node: None,
        }
    }

    /// Whether it answers to a name.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.also.iter().any(|other| other == name)
    }

    /// Whether a node, or none, is the one that it is for.
    pub(crate) fn is_for(&self, node: Option<&Name>) -> bool {
        self.node.as_ref().is_none_or(|own| node == Some(&own.name))
    }

    /// Whether a volume is reachable from the node that it is for.
    pub(crate) fn reaches(&self, volume: &Volume) -> bool {
        let is_here = |own: &OwnNode| {
            own.place == Labels::default() || volume.nodes.as_ref().is_none_or(|nodes| nodes.matches(&own.place, None))
        };
        self.node.as_ref().is_none_or(is_here)
    }

    /// The name of the volume of a claim. It derives from the claim's UID alone.
    pub fn volume_name(&self, claim: &Claim) -> Name {
        let uid = &claim.meta.uid;
        match self.uid_length {
            None => format!("{}-{uid}", self.prefix).into(),
            Some(length) => {
                let characters = uid.chars().filter(|character| *character != '-').take(length);
                format!("{}-{}", self.prefix, characters.collect::<String>()).into()
            }
        }
    }
}
