//! Names and capacities of volumes. They are upstream's, so that its volumes are recognized.

use bindery_model::hash::fnv1a;
use bindery_model::{Name, Quantity};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The name of the volume for an entry.
pub fn volume_name(entry: &str, node: &str, class: &str) -> Name {
    format!("local-pv-{:x}", fnv1a(&[entry, node, class].concat())).into()
}

/// The provisioner's name for a node. With the UID, a new node with the same name is a different
/// one.
pub fn provisioner(node: &str, uid: Option<&str>) -> Name {
    match uid {
        Some(uid) => format!("local-volume-provisioner-{node}-{uid}").into(),
        None => format!("local-volume-provisioner-{node}").into(),
    }
}

/// The capacity of a disk, rounded down to GiB from 10 GiB, to MiB from 10 MiB.
pub fn capacity(bytes: u64) -> Quantity {
    let unit = match bytes {
        bytes if bytes >= 10 * GIB => GIB,
        bytes if bytes >= 10 * MIB => MIB,
        _ => 1,
    };
    Quantity::of_bytes(bytes - bytes % unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_upstream() {
        assert_eq!(volume_name("file1", "node1", "sc1"), "local-pv-46a934d2");
        assert_eq!(volume_name("mount1", "test-node", "sc1"), "local-pv-aaaafef5");
        assert_eq!(provisioner("n", Some("u")), "local-volume-provisioner-n-u");
        assert_eq!(provisioner("n", None), "local-volume-provisioner-n");
    }

    #[test]
    fn hash_has_no_leading_zeros() {
        let short = (0..100_000).map(|n| volume_name(&n.to_string(), "n", "c")).find(|name| name.len() < 17);
        assert!(short.is_some_and(|name| !name.starts_with("local-pv-0")), "one in sixteen is shorter");
    }

    #[test]
    fn capacities_are_rounded_down() {
        let cases = [
            (10 * MIB - 1, "10485759"),
            (10 * MIB, "10Mi"),
            (11 * MIB - 1, "10Mi"),
            (10 * GIB - 1, "10239Mi"),
            (10 * GIB, "10Gi"),
            (11 * GIB - 1, "10Gi"),
            (0, "0"),
        ];
        for (bytes, text) in cases {
            assert_eq!(capacity(bytes).as_str(), text, "{bytes}");
        }
    }
}
