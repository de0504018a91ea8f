//! The volumes there are: by name, and those of this node by path; and which of them are ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_model::{Annotation, Name, Node, Source, Volume};

use super::HOST_LABEL;
use crate::config::Config;
use crate::naming;

/// Whose volumes are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The provisioner's name: what our volumes say they were made by.
    pub provisioner: Name,
    node: Name,
    /// Whether those are ours too that a predecessor made whose name had the node's UID in it.
    takes_over: bool,
}

impl Owner {
    /// The owner of a node's volumes.
    pub fn new(config: &Config, node: &Node) -> Owner {
        let uid = (!config.is_named_by_node_only).then_some(node.meta.uid.as_str());
        Owner {
            provisioner: naming::provisioner(node.name(), uid),
            node: node.name().clone(),
            takes_over: config.is_named_by_node_only,
        }
    }

    /// Whether a volume is ours.
    pub fn owns(&self, volume: &Volume) -> bool {
        let Some(by) = volume.annotations.get(Annotation::ProvisionedBy) else { return false };
        let is_predecessor_s = || {
            self.takes_over
                && volume.labels.get(HOST_LABEL) == Some(&self.node)
                && by.strip_prefix(self.provisioner.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        *by == self.provisioner || is_predecessor_s()
    }
}

/// The volumes there are, by name and by path.
#[derive(Debug, Clone, Default)]
pub struct Known {
    by_name: BTreeMap<Name, Arc<Volume>>,
    by_path: BTreeMap<String, Vec<Name>>,
}

impl Known {
    /// Takes in all volumes. Those at a path are counted whoever made them, if they can be reached from this node.
    pub fn new(node: &Node, volumes: impl IntoIterator<Item = Arc<Volume>>) -> Known {
        let mut known = Known::default();
        for volume in volumes {
            if let Source::Local(path) = &volume.source
                && volume.is_reachable(&node.labels)
            {
                known.by_path.entry(plain(path)).or_default().push(volume.name().clone());
            }
            known.by_name.insert(volume.name().clone(), volume);
        }
        known
    }

    /// The volume of a name.
    pub fn named(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.by_name.get(name)
    }

    /// The first volume of this node with a path.
    pub fn at(&self, path: &str) -> Option<&Name> {
        self.by_path.get(&plain(path)).and_then(|names| names.first())
    }

    /// The first other volume of this node with a path.
    pub fn other_at(&self, path: &str, name: &Name) -> Option<&Name> {
        self.by_path.get(&plain(path)).and_then(|names| names.iter().find(|other| *other != name))
    }

    /// All volumes.
    pub fn volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.by_name.values()
    }
}

/// A path without what says nothing.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}
