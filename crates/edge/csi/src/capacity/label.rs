//! The label by which a provisioner knows the objects that it looks after.

use bindery_model::hash::fnv1a;

/// Who looks after objects, where there is one provisioner for the whole cluster.
const CENTRAL: &str = "external-provisioner";
/// As long as a label's value may be.
const LENGTH_MAX: usize = 63;

/// Who looks after objects: one provisioner for the cluster, or one on each node.
pub fn managed_by(node: Option<&str>) -> String {
    match node {
        None => CENTRAL.to_owned(),
        Some(node) => joined(CENTRAL, node),
    }
}

/// Two words with a dash between. Where that is too long, the first is cut and its hash put in; where the second alone is too
/// long, it is left out, and the hash is that of both.
fn joined(base: &str, suffix: &str) -> String {
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
    fn labels_are_as_long_as_they_may_be() {
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
