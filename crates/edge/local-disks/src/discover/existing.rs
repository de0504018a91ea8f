//! The existing volumes: by name, and those of this node by path.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_model::{Annotation, Name, Node, Source, Volume};

use super::HOST_LABEL;
use crate::config::Config;
use crate::naming;

/// Identifies the volumes of this node's provisioner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The provisioner's name, as in the annotation `pv.kubernetes.io/provisioned-by`.
    pub provisioner: Name,
    node: Name,
    /// Also own volumes of an earlier provisioner whose name included the node's UID.
    adopts_predecessor: bool,
}

impl Owner {
    /// The owner of a node's volumes.
    pub fn new(config: &Config, node: &Node) -> Owner {
        let uid = (!config.use_node_name_only).then_some(node.meta.uid.as_str());
        Owner {
            provisioner: naming::provisioner(node.name(), uid),
            node: node.name().clone(),
            adopts_predecessor: config.use_node_name_only,
        }
    }

    /// Whether a volume was created by this node's provisioner.
    pub fn owns(&self, volume: &Volume) -> bool {
        let Some(by) = volume.annotations.get(Annotation::ProvisionedBy) else { return false };
        let is_predecessors = || {
            self.adopts_predecessor
                && volume.labels.get(HOST_LABEL) == Some(&self.node)
                && by.strip_prefix(self.provisioner.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        *by == self.provisioner || is_predecessors()
    }
}

/// The existing volumes, by name and by path.
#[derive(Debug, Clone, Default)]
pub struct ExistingVolumes {
    by_name: BTreeMap<Name, Arc<Volume>>,
    by_path: BTreeMap<String, Vec<Name>>,
}

impl ExistingVolumes {
    /// Indexes all volumes. Those that this node can access are indexed by path, whichever
    /// provisioner created them.
    pub fn new(node: &Node, volumes: impl IntoIterator<Item = Arc<Volume>>) -> ExistingVolumes {
        let mut existing = ExistingVolumes::default();
        for volume in volumes {
            if let Source::Local(path) = &volume.source
                && volume.is_reachable(&node.labels)
            {
                existing.by_path.entry(normalize(path)).or_default().push(volume.name().clone());
            }
            existing.by_name.insert(volume.name().clone(), volume);
        }
        existing
    }

    /// The volume with a name.
    pub fn named(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.by_name.get(name)
    }

    /// The first volume on this node with a path.
    pub fn at(&self, path: &str) -> Option<&Name> {
        self.by_path.get(&normalize(path)).and_then(|names| names.first())
    }

    /// The first volume on this node with a path, other than `name`.
    pub fn other_at(&self, path: &str, name: &Name) -> Option<&Name> {
        self.by_path.get(&normalize(path)).and_then(|names| names.iter().find(|other| *other != name))
    }

    /// All volumes.
    pub fn volumes(&self) -> impl Iterator<Item = &Arc<Volume>> {
        self.by_name.values()
    }
}

/// The path without empty and `.` components.
fn normalize(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}
