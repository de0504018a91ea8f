//! The configuration of a provisioner.

use std::hash::{BuildHasher, Hasher, RandomState};

use bindery_model::{Labels, Name, Volume};

/// A provisioner's identity and the capabilities of its storage.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name that StorageClasses and claims refer to.
    pub name: Name,
    /// Other names of the same provisioner, such as a migrated in-tree plugin's.
    pub aliases: Vec<Name>,
    /// A name that is unique to this process.
    pub instance: Name,
    /// The source component of its events.
    pub component: &'static str,
    /// Whether it provisions volumes; otherwise it only deletes backing storage.
    pub provisions: bool,
    /// Whether its volumes get a finalizer that keeps them until the backing storage is deleted.
    pub adds_finalizer: bool,
    /// Whether the storage supports volumeMode Block.
    pub supports_block: bool,
    /// Whether volumes are attached to nodes. Then no storage is deleted while it is attached.
    pub attachable: bool,
    /// Whether the storage clones volumes. Then the source claims are protected while it does.
    pub supports_cloning: bool,
    /// The prefix of volume names.
    pub prefix: Name,
    /// The number of characters of the claim's UID in volume names; `None` for all of them.
    pub uid_length: Option<usize>,
    /// How topology is handled, if the storage supports it.
    pub topology: Option<TopologyConfig>,
    /// The node that this instance serves, if there is one provisioner on each node.
    pub node: Option<OwnNode>,
    /// The most provisioning records at the same time. Further claims wait.
    pub records_max: usize,
    /// The largest provisioning record, in bytes.
    pub record_bytes_max: usize,
}

/// The only node that a provisioner serves.
#[derive(Debug, Clone)]
pub struct OwnNode {
    /// The node's name.
    pub name: Name,
    /// The node's topology segment. Volumes that are not accessible from it are ignored.
    pub segment: Labels,
}

/// How a provisioner handles topology.
#[derive(Debug, Clone, Copy)]
pub struct TopologyConfig {
    /// Whether a volume must be accessible from the selected node only.
    pub strict: bool,
    /// Whether topology is required for Immediate binding, when no node is selected.
    pub immediate: bool,
}

fn random_name() -> Name {
    format!("{:016x}", RandomState::new().build_hasher().finish()).into()
}

impl Config {
    /// A provisioner whose storage has no optional capabilities.
    pub fn new(name: impl Into<Name>) -> Config {
        let name = name.into();
        Config {
            // There is one per process, and it lives as long as the process.
            component: String::leak(name.to_string()),
            name,
            aliases: Vec::new(),
            instance: random_name(),
            provisions: true,
            adds_finalizer: true,
            supports_block: false,
            attachable: false,
            supports_cloning: false,
            prefix: Name::new_static("pvc"),
            uid_length: None,
            topology: None,
            node: None,
            records_max: 2_000,
            record_bytes_max: 256 << 10,
        }
    }

    /// Whether this is the provisioner's name or one of its aliases.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Whether this instance serves the selected node, or the absence of one.
    pub(crate) fn serves_node(&self, node: Option<&Name>) -> bool {
        self.node.as_ref().is_none_or(|own| node == Some(&own.name))
    }

    /// Whether a volume is accessible from the node that this instance serves.
    pub(crate) fn can_access(&self, volume: &Volume) -> bool {
        let is_accessible = |own: &OwnNode| {
            own.segment == Labels::default()
                || volume.nodes.as_ref().is_none_or(|nodes| nodes.matches(&own.segment, None))
        };
        self.node.as_ref().is_none_or(is_accessible)
    }

    /// The name of the volume for the claim with this UID, from which it derives.
    pub fn volume_name(&self, uid: &Name) -> Name {
        match self.uid_length {
            None => format!("{}-{uid}", self.prefix).into(),
            Some(length) => {
                let characters = uid.chars().filter(|character| *character != '-').take(length);
                format!("{}-{}", self.prefix, characters.collect::<String>()).into()
            }
        }
    }
}
