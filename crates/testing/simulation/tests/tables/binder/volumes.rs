//! Set 4: volumes.

use bindery_simulation::notation;

use crate::case::{Case, claim_key, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [free(), released(), unbound_claims(), bound_claims(), elsewhere(), stale()].into_iter().flatten().collect()
}

/// Upstream's cases start from Available, contrary to their names; those from Pending are ours.
fn free() -> Vec<Case> {
    vec![
        volume("4-1 pending volume", "volume4-1").before("pv volume4-1 10Gi Available").unchanged().events(&[]),
        volume("4-1 pending volume (that is Pending)", "volume4-1")
            .before("pv volume4-1 10Gi Pending")
            .after("pv volume4-1 10Gi Available")
            .events(&[]),
        volume("4-2 pending prebound volume", "volume4-2")
            .before("pv volume4-2 10Gi Available ->claim4-2")
            .unchanged()
            .events(&[]),
        volume("4-2 pending prebound volume (that is Pending)", "volume4-2")
            .before("pv volume4-2 10Gi Pending ->claim4-2")
            .after("pv volume4-2 10Gi Available ->claim4-2")
            .events(&[]),
    ]
}

fn released() -> Vec<Case> {
    vec![
        volume("4-3 bound volume with missing claim", "volume4-3")
            .before("pv volume4-3 10Gi Bound ->claim4-3#uid4-3")
            .after("pv volume4-3 10Gi Released ->claim4-3#uid4-3")
            .events(&[]),
        volume("4-4 volume bound to claim with different UID", "volume4-4")
            .before(
                "pv  volume4-4 10Gi Bound ->claim4-4#uid4-4
                 pvc claim4-4#uid4-4-x 10Gi Bound vol=volume4-4 bc",
            )
            .after(
                "pv  volume4-4 10Gi Released ->claim4-4#uid4-4
                 pvc claim4-4#uid4-4-x 10Gi Bound vol=volume4-4 bc",
            )
            .events(&[])
            // The claim was bound to a volume of another claim.
            .stable(
                "pv  volume4-4 10Gi Released ->claim4-4#uid4-4
                 pvc claim4-4#uid4-4-x 10Gi Lost vol=volume4-4 bc",
            ),
        volume("4-10 volume bound to missing claim", "volume4-10")
            .before("pv volume4-10 10Gi Available ->claim4-10#uid4-10 policy=Delete")
            .after(
                "pv volume4-10 10Gi Failed ->claim4-10#uid4-10 policy=Delete \
                 msg=error_getting_deleter_volume_plugin_for_volume_\"volume4-10\":_no_volume_plugin_matched",
            )
            .events(&["Warning VolumeFailedDelete error getting deleter volume plugin for volume \"volume4-10\""]),
    ]
}

/// The sync of the claim completes the bind.
fn unbound_claims() -> Vec<Case> {
    vec![
        volume("4-5 volume bound by controller to unbound claim", "volume4-5")
            .before(
                "pv  volume4-5 10Gi Bound ->claim4-5#uid4-5 bbc
                 pvc claim4-5#uid4-5 10Gi Pending",
            )
            .unchanged()
            .events(&[])
            .stable(
                "pv  volume4-5 10Gi Bound ->claim4-5#uid4-5 bbc
                 pvc claim4-5#uid4-5 10Gi Bound vol=volume4-5 bbc bc",
            ),
        volume("4-5 volume bound by user to unbound claim", "volume4-5")
            .before(
                "pv  volume4-5 10Gi Bound ->claim4-5#uid4-5
                 pvc claim4-5#uid4-5 10Gi Pending",
            )
            .unchanged()
            .events(&[])
            .stable(
                "pv  volume4-5 10Gi Bound ->claim4-5#uid4-5
                 pvc claim4-5#uid4-5 10Gi Bound vol=volume4-5 bbc bc",
            ),
    ]
}

/// The sync of the claim marks its bind as complete.
fn bound_claims() -> Vec<Case> {
    vec![
        volume("4-6 volume bound to bound claim", "volume4-6")
            .before(
                "pv  volume4-6 10Gi Available ->claim4-6#uid4-6
                 pvc claim4-6#uid4-6 10Gi Bound vol=volume4-6",
            )
            .after(
                "pv  volume4-6 10Gi Bound ->claim4-6#uid4-6
                 pvc claim4-6#uid4-6 10Gi Bound vol=volume4-6",
            )
            .events(&[])
            .stable(
                "pv  volume4-6 10Gi Bound ->claim4-6#uid4-6
                 pvc claim4-6#uid4-6 10Gi Bound vol=volume4-6 bc",
            ),
        volume("4-9 volume bound to bound claim, with policy Delete", "volume4-9")
            .before(
                "pv  volume4-9 10Gi Available ->claim4-9#uid4-9 policy=Delete
                 pvc claim4-9#uid4-9 10Gi Bound vol=volume4-9",
            )
            .after(
                "pv  volume4-9 10Gi Bound ->claim4-9#uid4-9 policy=Delete
                 pvc claim4-9#uid4-9 10Gi Bound vol=volume4-9",
            )
            .events(&[])
            .stable(
                "pv  volume4-9 10Gi Bound ->claim4-9#uid4-9 policy=Delete
                 pvc claim4-9#uid4-9 10Gi Bound vol=volume4-9 bc",
            ),
    ]
}

/// The claim names a volume that does not exist, and was never bound completely.
fn elsewhere() -> Vec<Case> {
    vec![
        volume("4-7 volume bound by controller to claim bound somewhere else", "volume4-7")
            .before(
                "pv  volume4-7 10Gi Bound ->claim4-7#uid4-7 bbc
                 pvc claim4-7#uid4-7 10Gi Bound vol=volume4-7-x",
            )
            .after(
                "pv  volume4-7 10Gi Available
                 pvc claim4-7#uid4-7 10Gi Bound vol=volume4-7-x",
            )
            .events(&[])
            .stable(
                "pv  volume4-7 10Gi Available
                 pvc claim4-7#uid4-7 10Gi Pending vol=volume4-7-x",
            ),
        volume("4-8 volume bound by user to claim bound somewhere else", "volume4-8")
            .before(
                "pv  volume4-8 10Gi Bound ->claim4-8#uid4-8
                 pvc claim4-8#uid4-8 10Gi Bound vol=volume4-8-x",
            )
            .after(
                "pv  volume4-8 10Gi Available ->claim4-8
                 pvc claim4-8#uid4-8 10Gi Bound vol=volume4-8-x",
            )
            .events(&[])
            .stable(
                "pv  volume4-8 10Gi Available ->claim4-8
                 pvc claim4-8#uid4-8 10Gi Pending vol=volume4-8-x",
            ),
    ]
}

/// The cached claim is stale.
fn stale() -> Vec<Case> {
    vec![
        volume("4-11 volume bound to unknown claim", "volume4-11")
            .before(
                "pv  volume4-11 10Gi Available ->claim4-11#uid4-11 policy=Delete
                 pvc claim4-11#uid4-11 10Gi Bound vol=volume4-11",
            )
            .unseen(&[claim_key("claim4-11")])
            .after(
                "pv  volume4-11 10Gi Bound ->claim4-11#uid4-11 policy=Delete
                 pvc claim4-11#uid4-11 10Gi Bound vol=volume4-11",
            )
            .events(&[])
            .stable(
                "pv  volume4-11 10Gi Bound ->claim4-11#uid4-11 policy=Delete
                 pvc claim4-11#uid4-11 10Gi Bound vol=volume4-11 bc",
            ),
        volume("4-12 volume bound to newest claim but not updated to local cache", "volume4-12")
            .before(
                "pv  volume4-12 10Gi Available ->claim4-12#uid4-12-new policy=Delete
                 pvc claim4-12#uid4-12 10Gi Bound vol=volume4-12",
            )
            .unseen_change(|cluster| {
                cluster.remove(&claim_key("claim4-12"));
                notation::add(cluster, "pvc claim4-12#uid4-12-new 10Gi Bound vol=volume4-12");
            })
            .after(
                "pv  volume4-12 10Gi Bound ->claim4-12#uid4-12-new policy=Delete
                 pvc claim4-12#uid4-12-new 10Gi Bound vol=volume4-12",
            )
            .events(&[])
            .stable(
                "pv  volume4-12 10Gi Bound ->claim4-12#uid4-12-new policy=Delete
                 pvc claim4-12#uid4-12-new 10Gi Bound vol=volume4-12 bc",
            ),
    ]
}
