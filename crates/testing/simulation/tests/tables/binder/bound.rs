//! Set 3: bound claims.

use crate::case::{Case, claim};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [missing_volumes(), unclaimed(), claimed()].into_iter().flatten().collect()
}

fn missing_volumes() -> Vec<Case> {
    vec![
        claim("3-1 bound claim with missing VolumeName", "claim3-1")
            .before("pvc claim3-1#uid3-1 10Gi Bound bbc bc")
            .after("pvc claim3-1#uid3-1 10Gi Lost bbc bc")
            .events(&["Warning ClaimLost Bound claim has lost reference to PersistentVolume."]),
        claim("3-2 bound claim with missing volume", "claim3-2")
            .before("pvc claim3-2#uid3-2 10Gi Bound vol=volume3-2 bbc bc")
            .after("pvc claim3-2#uid3-2 10Gi Lost vol=volume3-2 bbc bc")
            .events(&["Warning ClaimLost Bound claim has lost its PersistentVolume."]),
    ]
}

fn unclaimed() -> Vec<Case> {
    vec![
        claim("3-3 bound claim with unbound volume", "claim3-3")
            .before(
                "pv  volume3-3 10Gi Available
                 pvc claim3-3#uid3-3 10Gi Pending vol=volume3-3 bbc bc",
            )
            .after(
                "pv  volume3-3 10Gi Bound ->claim3-3#uid3-3 bbc
                 pvc claim3-3#uid3-3 10Gi Bound vol=volume3-3 bbc bc",
            )
            .events(&[]),
        claim("3-7 bound claim with unbound volume where selector doesn't match", "claim3-3")
            .before(
                "pv  volume3-3 10Gi Available
                 pvc claim3-3#uid3-3 10Gi Pending vol=volume3-3 sel=foo:true sel=bar:false bbc bc",
            )
            .after(
                "pv  volume3-3 10Gi Bound ->claim3-3#uid3-3 bbc
                 pvc claim3-3#uid3-3 10Gi Bound vol=volume3-3 bbc bc",
            )
            .events(&[]),
    ]
}

fn claimed() -> Vec<Case> {
    vec![
        claim("3-4 bound claim with prebound volume", "claim3-4")
            .before(
                "pv  volume3-4 10Gi Available ->claim3-4#claim3-4-x
                 pvc claim3-4#uid3-4 10Gi Pending vol=volume3-4 bbc bc",
            )
            .after(
                "pv  volume3-4 10Gi Available ->claim3-4#claim3-4-x
                 pvc claim3-4#uid3-4 10Gi Lost vol=volume3-4 bbc bc",
            )
            .events(&["Warning ClaimMisbound"])
            // The claim in the `claimRef` of the volume does not exist.
            .stable(
                "pv  volume3-4 10Gi Released ->claim3-4#claim3-4-x
                 pvc claim3-4#uid3-4 10Gi Lost vol=volume3-4 bbc bc",
            ),
        claim("3-5 bound claim with bound volume", "claim3-5")
            .before(
                "pv  volume3-5 10Gi Available ->claim3-5#uid3-5
                 pvc claim3-5#uid3-5 10Gi Pending vol=volume3-5 bc",
            )
            .after(
                "pv  volume3-5 10Gi Bound ->claim3-5#uid3-5
                 pvc claim3-5#uid3-5 10Gi Bound vol=volume3-5 bc",
            )
            .events(&[]),
        claim("3-6 bound claim with volume bound to different claim", "claim3-6")
            .before(
                "pv  volume3-6 10Gi Available ->claim3-6-x#uid3-6-x
                 pvc claim3-6#uid3-6 10Gi Pending vol=volume3-6 bc",
            )
            .after(
                "pv  volume3-6 10Gi Available ->claim3-6-x#uid3-6-x
                 pvc claim3-6#uid3-6 10Gi Lost vol=volume3-6 bc",
            )
            .events(&["Warning ClaimMisbound"])
            // The claim in the `claimRef` of the volume does not exist.
            .stable(
                "pv  volume3-6 10Gi Released ->claim3-6-x#uid3-6-x
                 pvc claim3-6#uid3-6 10Gi Lost vol=volume3-6 bc",
            ),
    ]
}
