//! binder_test.go: the state machines of claims and volumes. Cases that disable the attributes
//! class feature gate (2-13, and the second run of all others) are left out: the gate is locked.

mod bound;
mod claims;
mod classes;
mod modes;
mod named;
mod volumes;

use crate::case::{Case, multi};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    let sets = [
        claims::cases(),
        named::cases(),
        bound::cases(),
        volumes::cases(),
        classes::cases(),
        modes::cases(),
        several_syncs(),
    ];
    sets.into_iter().flatten().collect()
}

/// Set 10: the result of several syncs.
fn several_syncs() -> Vec<Case> {
    vec![
        multi("10-1 successful bind")
            .before(
                "pv  volume10-1 1Gi Pending
                 pvc claim10-1#uid10-1 1Gi Pending",
            )
            .after(
                "pv  volume10-1 1Gi Bound ->claim10-1#uid10-1 bbc
                 pvc claim10-1#uid10-1 1Gi Bound vol=volume10-1 bbc bc",
            )
            .events(&[]),
        multi("10-2 bind PV race")
            .before(
                "pv  volume10-2-1 1Gi Bound ->claim10-2#uid10-2 bbc
                 pv  volume10-2-2 1Gi Bound ->claim10-2#uid10-2 bbc
                 pvc claim10-2#uid10-2 1Gi Bound vol=volume10-2-1 bbc bc",
            )
            .after(
                "pv  volume10-2-1 1Gi Bound ->claim10-2#uid10-2 bbc
                 pv  volume10-2-2 1Gi Available
                 pvc claim10-2#uid10-2 1Gi Bound vol=volume10-2-1 bbc bc",
            )
            .events(&[]),
    ]
}
