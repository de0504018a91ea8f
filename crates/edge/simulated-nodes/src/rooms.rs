//! How much storage each simulated node has, and who has it. Synchronous, and without a client.

use std::collections::BTreeMap;

/// Storage of nodes, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Rooms {
    nodes: BTreeMap<String, i128>,
    held: BTreeMap<String, (String, i128)>,
    /// How much of each node is held.
    taken: BTreeMap<String, i128>,
}

/// There is not enough anywhere: where there is most, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    /// The node that has most left, of those that were asked for.
    pub node: Option<String>,
    /// How much that is.
    pub free: i128,
}

impl Rooms {
    /// Says which nodes there are, and how much each has. What is held on nodes that are gone stays held.
    pub fn set_nodes(&mut self, nodes: BTreeMap<String, i128>) {
        self.nodes = nodes;
    }

    /// The nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// How much a node has left.
    pub fn free(&self, node: &str) -> i128 {
        let of = |map: &BTreeMap<String, i128>| map.get(node).copied().unwrap_or_default();
        (of(&self.nodes) - of(&self.taken)).max(0)
    }

    /// Takes room for a volume on the first of some nodes that has enough, once: whoever has it, has it.
    pub fn take(&mut self, volume: &str, bytes: i128, nodes: &[&str]) -> Result<String, Full> {
        if let Some((node, _)) = self.held.get(volume) {
            return Ok(node.clone());
        }
        match nodes.iter().find(|node| self.free(node) >= bytes) {
            Some(node) => {
                self.hold(volume, node, bytes);
                Ok((*node).to_owned())
            }
            None => {
                let most = nodes.iter().max_by_key(|node| self.free(node));
                Err(Full { node: most.map(|node| (*node).to_owned()), free: most.map_or(0, |node| self.free(node)) })
            }
        }
    }

    /// Notes that a volume has room on a node.
    pub fn hold(&mut self, volume: &str, node: &str, bytes: i128) {
        self.give_back(volume);
        self.held.insert(volume.to_owned(), (node.to_owned(), bytes));
        *self.taken.entry(node.to_owned()).or_default() += bytes;
    }

    /// Gives the room of a volume back.
    pub fn give_back(&mut self, volume: &str) {
        if let Some((node, bytes)) = self.held.remove(volume)
            && let Some(taken) = self.taken.get_mut(&node)
        {
            *taken -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once_and_given_back() {
        let mut rooms = Rooms::default();
        rooms.set_nodes([("a".to_owned(), 10), ("b".to_owned(), 5)].into());
        assert_eq!(rooms.take("v1", 7, &["a", "b"]), Ok("a".into()));
        assert_eq!(rooms.take("v1", 7, &["b"]), Ok("a".into()), "it has its room already");
        assert_eq!(rooms.take("v2", 5, &["a", "b"]), Ok("b".into()));
        assert_eq!(rooms.take("v3", 4, &["a", "b"]), Err(Full { node: Some("a".into()), free: 3 }));
        assert_eq!(rooms.take("v3", 1, &["gone"]), Err(Full { node: Some("gone".into()), free: 0 }));
        rooms.give_back("v1");
        rooms.give_back("v1");
        assert_eq!((rooms.free("a"), rooms.free("b")), (10, 0));
    }
}
