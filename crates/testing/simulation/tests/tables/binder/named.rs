//! Set 2: claims that name a volume.

use crate::case::{Case, claim};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [missing(), suitable(), taken(), mismatch(), attributes()].into_iter().flatten().collect()
}

fn missing() -> Vec<Case> {
    vec![
        claim("2-1 claim prebound to non-existing volume - noop", "claim2-1")
            .before("pvc claim2-1#uid2-1 10Gi Pending vol=volume2-1")
            .unchanged()
            .events(&[]),
        claim("2-2 claim prebound to non-existing volume - reset status", "claim2-2")
            .before("pvc claim2-2#uid2-2 10Gi Bound vol=volume2-2")
            .after("pvc claim2-2#uid2-2 10Gi Pending vol=volume2-2")
            .events(&[]),
    ]
}

fn suitable() -> Vec<Case> {
    vec![
        claim("2-3 claim prebound to unbound volume", "claim2-3")
            .before(
                "pv  volume2-3 1Gi Available
                 pvc claim2-3#uid2-3 1Gi Pending vol=volume2-3",
            )
            .after(
                "pv  volume2-3 1Gi Bound ->claim2-3#uid2-3 bbc
                 pvc claim2-3#uid2-3 1Gi Bound vol=volume2-3 bc",
            )
            .events(&[]),
        claim("2-4 claim prebound to prebound volume by name", "claim2-4")
            .before(
                "pv  volume2-4 1Gi Available ->claim2-4
                 pvc claim2-4#uid2-4 1Gi Pending vol=volume2-4",
            )
            .after(
                "pv  volume2-4 1Gi Bound ->claim2-4#uid2-4
                 pvc claim2-4#uid2-4 1Gi Bound vol=volume2-4 bc",
            )
            .events(&[]),
        claim("2-5 claim prebound to prebound volume by UID", "claim2-5")
            .before(
                "pv  volume2-5 1Gi Available ->claim2-5#uid2-5
                 pvc claim2-5#uid2-5 1Gi Pending vol=volume2-5",
            )
            .after(
                "pv  volume2-5 1Gi Bound ->claim2-5#uid2-5
                 pvc claim2-5#uid2-5 1Gi Bound vol=volume2-5 bc",
            )
            .events(&[]),
        claim("2-8 claim prebound to unbound volume that does not match the selector", "claim2-8")
            .before(
                "pv  volume2-8 1Gi Available
                 pvc claim2-8#uid2-8 1Gi Pending vol=volume2-8 sel=foo:true sel=bar:false",
            )
            .after(
                "pv  volume2-8 1Gi Bound ->claim2-8#uid2-8 bbc
                 pvc claim2-8#uid2-8 1Gi Bound vol=volume2-8 bc",
            )
            .events(&[]),
    ]
}

fn taken() -> Vec<Case> {
    vec![
        claim("2-6 claim prebound to already bound volume", "claim2-6")
            .before(
                "pv  volume2-6 1Gi Bound ->claim2-6_1#uid2-6_1
                 pvc claim2-6#uid2-6 1Gi Bound vol=volume2-6",
            )
            .after(
                "pv  volume2-6 1Gi Bound ->claim2-6_1#uid2-6_1
                 pvc claim2-6#uid2-6 1Gi Pending vol=volume2-6",
            )
            .events(&["Warning FailedBinding volume \"volume2-6\" already bound to a different claim."])
            // The claim in the `claimRef` of the volume does not exist.
            .stable(
                "pv  volume2-6 1Gi Released ->claim2-6_1#uid2-6_1
                 pvc claim2-6#uid2-6 1Gi Pending vol=volume2-6",
            ),
        claim("2-7 claim bound by controller to already bound volume (difference: no error is retried)", "claim2-7")
            .before(
                "pv  volume2-7 1Gi Bound ->claim2-7_1#uid2-7_1
                 pvc claim2-7#uid2-7 1Gi Bound vol=volume2-7 bbc",
            )
            .unchanged()
            .events(&["Warning FailedBinding volume \"volume2-7\" already bound to a different claim."])
            .stable(
                "pv  volume2-7 1Gi Released ->claim2-7_1#uid2-7_1
                 pvc claim2-7#uid2-7 1Gi Bound vol=volume2-7 bbc",
            ),
    ]
}

fn mismatch() -> Vec<Case> {
    vec![
        claim("2-9 claim prebound to unbound volume that size is smaller than requested", "claim2-9")
            .before(
                "pv  volume2-9 1Gi Available
                 pvc claim2-9#uid2-9 2Gi Bound vol=volume2-9",
            )
            .after(
                "pv  volume2-9 1Gi Available
                 pvc claim2-9#uid2-9 2Gi Pending vol=volume2-9",
            )
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume2-9\": requested PV is too"]),
        claim("2-10 claim prebound to unbound volume that class is different", "claim2-10")
            .before(
                "pv  volume2-10 1Gi Available class=gold
                 pvc claim2-10#uid2-10 1Gi Bound vol=volume2-10",
            )
            .after(
                "pv  volume2-10 1Gi Available class=gold
                 pvc claim2-10#uid2-10 1Gi Pending vol=volume2-10",
            )
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume2-10\": storageClassName"]),
    ]
}

fn attributes() -> Vec<Case> {
    vec![
        claim("2-11 claim prebound to unbound volume that volume attributes class is different", "claim2-11")
            .before(
                "pv  volume2-11 1Gi Available vac=gold
                 pvc claim2-11#uid2-11 1Gi Bound vol=volume2-11",
            )
            .after(
                "pv  volume2-11 1Gi Available vac=gold
                 pvc claim2-11#uid2-11 1Gi Pending vol=volume2-11",
            )
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume2-11\": volumeAttributes"]),
        claim("2-12 claim prebound to unbound volume that volume attributes class is same", "claim2-12")
            .before(
                "pv  volume2-12 1Gi Available vac=gold
                 pvc claim2-12#uid2-12 1Gi Pending vol=volume2-12 vac=gold",
            )
            .after(
                "pv  volume2-12 1Gi Bound ->claim2-12#uid2-12 vac=gold bbc
                 pvc claim2-12#uid2-12 1Gi Bound vol=volume2-12 vac=gold has-vac=gold bc",
            )
            .events(&[]),
    ]
}
