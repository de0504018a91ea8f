//! The label that identifies the provisioner that manages a CSIStorageCapacity object.

use bindery_model::hash::fnv1a;

/// The label's value for one provisioner for the whole cluster.
const CENTRAL: &str = "external-provisioner";
/// The maximum length of a label value.
const LENGTH_MAX: usize = 63;

/// The label's value: for one provisioner for the whole cluster, or one on each node.
pub fn managed_by(node: Option<&str>) -> String {
    match node {
        None => CENTRAL.to_owned(),
        Some(node) => join(CENTRAL, node),
    }
}

/// Joins both with a dash. If that is too long, base is cut and its hash inserted; if the suffix
/// alone is too long, it is dropped, and the hash covers both.
fn join(base: &str, suffix: &str) -> String {
    let whole = format!("{base}-{suffix}");
    if whole.len() <= LENGTH_MAX {
        return whole;
    }
    let hash = |text: &str| format!("{:08x}", fnv1a(text));
    match LENGTH_MAX.checked_sub(10 + suffix.len()).filter(|left| *left > 0) {
        Some(left) => format!("{}-{}-{suffix}", &base[..left.min(base.len())], hash(base)),
        None => format!("{}-{}", &base[..base.len().min(LENGTH_MAX - 9)], hash(&whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_shortened_to_the_maximum_length() {
        assert_eq!(managed_by(None), "external-provisioner");
        assert_eq!(managed_by(Some("node-1")), "external-provisioner-node-1");
        let fits = "n".repeat(42);
        assert_eq!(managed_by(Some(&fits)), format!("external-provisioner-{fits}"));
        let long = "n".repeat(43);
        assert_eq!(managed_by(Some(&long)), format!("external-p-53f40b57-{long}"));
        let longer = "n".repeat(53);
        let label = managed_by(Some(&longer));
        assert!(label.starts_with("external-provisioner-") && label.len() == 20 + 9, "{label}");
        for length in 1..253 {
            assert!(managed_by(Some(&"n".repeat(length))).len() <= LENGTH_MAX);
        }
    }
}
