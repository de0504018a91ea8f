//! binder_test.go: the state machines of claims and volumes.

use crate::case::{Case, claim, multi, volume};

/// All cases.
pub fn cases() -> Vec<Case> {
    [matching(), volumes()].into_iter().flatten().collect()
}

/// Set 1: claims that look for a volume.
fn matching() -> Vec<Case> {
    vec![
        claim("1-1 successful bind", "claim1-1")
            .before(
                "pv  volume1-1 1Gi Available
                 pvc claim1-1#uid1-1 1Gi Pending",
            )
            .after(
                "pv  volume1-1 1Gi Bound ->claim1-1#uid1-1 bbc
                 pvc claim1-1#uid1-1 1Gi Bound vol=volume1-1 bbc bc",
            )
            .events(&[]),
        claim("1-2 noop", "claim1-2")
            .before(
                "pv  volume1-2 1Gi Available
                 pvc claim1-2#uid1-2 10Gi Pending",
            )
            .unchanged()
            .events(&["Normal FailedBinding"]),
        multi("10-1 two steps")
            .before(
                "pv volume10-1 1Gi Pending
        pvc claim10-1#uid10-1 1Gi Pending",
            )
            .after(
                "pv  volume10-1 1Gi Bound ->claim10-1#uid10-1 bbc
                 pvc claim10-1#uid10-1 1Gi Bound vol=volume10-1 bbc bc",
            ),
    ]
}

fn volumes() -> Vec<Case> {
    vec![
        volume("4-3 claim missing, Retain", "volume4-3")
            .before("pv volume4-3 10Gi Bound ->claim4-3#uid4-3")
            .after("pv volume4-3 10Gi Released ->claim4-3#uid4-3"),
        volume("8-1", "volume8-1")
            .before("pv volume8-1 1Gi Bound ->claim8-1#uid8-1 bbc policy=Delete source=hostPath:/tmp/x by=kubernetes.io/host-path fin=kubernetes.io/pv-controller")
            .after(""),
    ]
}
