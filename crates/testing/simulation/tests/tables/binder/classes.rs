//! Set 13: claims with and without a class.

use crate::case::{Case, claim};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [before_size(), no_class()].into_iter().flatten().collect()
}

/// The class must match, even if a volume of another class is smaller.
fn before_size() -> Vec<Case> {
    vec![
        claim("13-1 binding to class", "claim13-1")
            .before(
                "pv  volume13-1-1 1Gi Available
                 pv  volume13-1-2 10Gi Available class=gold
                 pvc claim13-1#uid13-1 1Gi Pending class=gold",
            )
            .after(
                "pv  volume13-1-1 1Gi Available
                 pv  volume13-1-2 10Gi Bound ->claim13-1#uid13-1 class=gold bbc
                 pvc claim13-1#uid13-1 1Gi Bound vol=volume13-1-2 got=10Gi/RWO,ROX class=gold bbc bc",
            )
            .events(&[]),
        claim("13-2 binding without a class", "claim13-2")
            .before(
                "pv  volume13-2-1 1Gi Available class=gold
                 pv  volume13-2-2 10Gi Available
                 pvc claim13-2#uid13-2 1Gi Pending",
            )
            .after(
                "pv  volume13-2-1 1Gi Available class=gold
                 pv  volume13-2-2 10Gi Bound ->claim13-2#uid13-2 bbc
                 pvc claim13-2#uid13-2 1Gi Bound vol=volume13-2-2 got=10Gi/RWO,ROX bbc bc",
            )
            .events(&[]),
        claim("13-3 binding to specific a class", "claim13-3")
            .before(
                "pv  volume13-3-1 1Gi Available class=silver
                 pv  volume13-3-2 10Gi Available class=gold
                 pvc claim13-3#uid13-3 1Gi Pending class=gold",
            )
            .after(
                "pv  volume13-3-1 1Gi Available class=silver
                 pv  volume13-3-2 10Gi Bound ->claim13-3#uid13-3 class=gold bbc
                 pvc claim13-3#uid13-3 1Gi Bound vol=volume13-3-2 got=10Gi/RWO,ROX class=gold bbc bc",
            )
            .events(&[]),
    ]
}

/// For a volume, no class and the empty class are equivalent.
fn no_class() -> Vec<Case> {
    vec![
        claim("13-4 empty class", "claim13-4")
            .before(
                "pv  volume13-4 1Gi Available
                 pvc claim13-4#uid13-4 1Gi Pending class=",
            )
            .after(
                "pv  volume13-4 1Gi Bound ->claim13-4#uid13-4 bbc
                 pvc claim13-4#uid13-4 1Gi Bound vol=volume13-4 class= bbc bc",
            )
            .events(&[]),
        claim("13-5 nil class", "claim13-5")
            .before(
                "pv  volume13-5 1Gi Available
                 pvc claim13-5#uid13-5 1Gi Pending",
            )
            .after(
                "pv  volume13-5 1Gi Bound ->claim13-5#uid13-5 bbc
                 pvc claim13-5#uid13-5 1Gi Bound vol=volume13-5 bbc bc",
            )
            .events(&[]),
    ]
}
