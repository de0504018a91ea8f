//! The storage of each simulated node, and its allocations. Synchronous, without a client.

use std::collections::BTreeMap;

/// The capacity of all nodes, in bytes.
#[derive(Debug, Clone, Default)]
pub struct NodeCapacity {
    nodes: BTreeMap<String, i128>,
    allocations: BTreeMap<String, (String, i128)>,
    /// The allocated bytes of each node.
    allocated: BTreeMap<String, i128>,
}

/// No node has enough capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsufficientCapacity {
    /// The node with the most free capacity.
    pub node: Option<String>,
    /// Its free capacity.
    pub free: i128,
}

impl NodeCapacity {
    /// Sets the nodes and their capacities. Allocations on deleted nodes are kept.
    pub fn set_nodes(&mut self, nodes: BTreeMap<String, i128>) {
        self.nodes = nodes;
    }

    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The free capacity of a node.
    pub fn free(&self, node: &str) -> i128 {
        let of = |map: &BTreeMap<String, i128>| map.get(node).copied().unwrap_or_default();
        (of(&self.nodes) - of(&self.allocated)).max(0)
    }

    /// Allocates capacity for a volume on the first node that has enough. Idempotent.
    pub fn allocate(&mut self, volume: &str, bytes: i128, nodes: &[&str]) -> Result<String, InsufficientCapacity> {
        if let Some((node, _)) = self.allocations.get(volume) {
            return Ok(node.clone());
        }
        match nodes.iter().find(|node| self.free(node) >= bytes) {
            Some(node) => {
                self.record(volume, node, bytes);
                Ok((*node).to_owned())
            }
            None => {
                let most = nodes.iter().max_by_key(|node| self.free(node));
                Err(InsufficientCapacity {
                    node: most.map(|node| (*node).to_owned()),
                    free: most.map_or(0, |node| self.free(node)),
                })
            }
        }
    }

    /// Records an allocation.
    pub fn record(&mut self, volume: &str, node: &str, bytes: i128) {
        self.release(volume);
        self.allocations.insert(volume.to_owned(), (node.to_owned(), bytes));
        *self.allocated.entry(node.to_owned()).or_default() += bytes;
    }

    /// Releases the allocation of a volume.
    pub fn release(&mut self, volume: &str) {
        if let Some((node, bytes)) = self.allocations.remove(volume)
            && let Some(allocated) = self.allocated.get_mut(&node)
        {
            *allocated -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_allocated_once_and_released() {
        let mut capacity = NodeCapacity::default();
        capacity.set_nodes([("a".to_owned(), 10), ("b".to_owned(), 5)].into());
        assert_eq!(capacity.allocate("v1", 7, &["a", "b"]), Ok("a".into()));
        assert_eq!(capacity.allocate("v1", 7, &["b"]), Ok("a".into()), "it is already allocated");
        assert_eq!(capacity.allocate("v2", 5, &["a", "b"]), Ok("b".into()));
        assert_eq!(
            capacity.allocate("v3", 4, &["a", "b"]),
            Err(InsufficientCapacity { node: Some("a".into()), free: 3 })
        );
        assert_eq!(
            capacity.allocate("v3", 1, &["gone"]),
            Err(InsufficientCapacity { node: Some("gone".into()), free: 0 })
        );
        capacity.release("v1");
        capacity.release("v1");
        assert_eq!((capacity.free("a"), capacity.free("b")), (10, 0));
    }
}
