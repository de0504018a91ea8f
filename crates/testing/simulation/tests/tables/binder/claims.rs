//! Set 1: claims that accept any matching volume.

use crate::case::{Case, claim};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [sizes(), reserved(), crashes(), selectors(), delayed(), named_and_unavailable()].into_iter().flatten().collect()
}

fn sizes() -> Vec<Case> {
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
        claim("1-3 reset to Pending", "claim1-3")
            .before(
                "pv  volume1-3 1Gi Available
                 pvc claim1-3#uid1-3 10Gi Bound",
            )
            .after(
                "pv  volume1-3 1Gi Available
                 pvc claim1-3#uid1-3 10Gi Pending",
            )
            .events(&["Normal FailedBinding"]),
        claim("1-4 smallest volume", "claim1-4")
            .before(
                "pv  volume1-4_1 10Gi Available
                 pv  volume1-4_2 1Gi Available
                 pvc claim1-4#uid1-4 1Gi Pending",
            )
            .after(
                "pv  volume1-4_1 10Gi Available
                 pv  volume1-4_2 1Gi Bound ->claim1-4#uid1-4 bbc
                 pvc claim1-4#uid1-4 1Gi Bound vol=volume1-4_2 bbc bc",
            )
            .events(&[]),
    ]
}

fn reserved() -> Vec<Case> {
    vec![
        claim("1-5 prebound volume by name - success", "claim1-5")
            .before(
                "pv  volume1-5_1 10Gi Available ->claim1-5
                 pv  volume1-5_2 1Gi Available
                 pvc claim1-5#uid1-5 1Gi Pending",
            )
            .after(
                "pv  volume1-5_1 10Gi Bound ->claim1-5#uid1-5
                 pv  volume1-5_2 1Gi Available
                 pvc claim1-5#uid1-5 1Gi Bound vol=volume1-5_1 got=10Gi/RWO,ROX bbc bc",
            )
            .events(&[]),
        claim("1-6 prebound volume by UID - success", "claim1-6")
            .before(
                "pv  volume1-6_1 10Gi Available ->claim1-6#uid1-6
                 pv  volume1-6_2 1Gi Available
                 pvc claim1-6#uid1-6 1Gi Pending",
            )
            .after(
                "pv  volume1-6_1 10Gi Bound ->claim1-6#uid1-6
                 pv  volume1-6_2 1Gi Available
                 pvc claim1-6#uid1-6 1Gi Bound vol=volume1-6_1 got=10Gi/RWO,ROX bbc bc",
            )
            .events(&[]),
        claim("1-7 prebound volume to different claim", "claim1-7")
            .before(
                "pv  volume1-7 10Gi Available ->claim1-7#uid1-777
                 pvc claim1-7#uid1-7 1Gi Pending",
            )
            .unchanged()
            .events(&["Normal FailedBinding"])
            // The claim in the `claimRef` of the volume does not exist.
            .stable(
                "pv  volume1-7 10Gi Released ->claim1-7#uid1-777
                 pvc claim1-7#uid1-7 1Gi Pending",
            ),
    ]
}

fn crashes() -> Vec<Case> {
    vec![
        claim("1-8 complete bind after crash - PV bound", "claim1-8")
            .before(
                "pv  volume1-8 1Gi Available ->claim1-8#uid1-8 bbc
                 pvc claim1-8#uid1-8 1Gi Pending",
            )
            .after(
                "pv  volume1-8 1Gi Bound ->claim1-8#uid1-8 bbc
                 pvc claim1-8#uid1-8 1Gi Bound vol=volume1-8 bbc bc",
            )
            .events(&[]),
        claim("1-9 complete bind after crash - PV status saved", "claim1-9")
            .before(
                "pv  volume1-9 1Gi Bound ->claim1-9#uid1-9 bbc
                 pvc claim1-9#uid1-9 1Gi Pending",
            )
            .after(
                "pv  volume1-9 1Gi Bound ->claim1-9#uid1-9 bbc
                 pvc claim1-9#uid1-9 1Gi Bound vol=volume1-9 bbc bc",
            )
            .events(&[]),
        claim("1-10 complete bind after crash - PVC bound", "claim1-10")
            .before(
                "pv  volume1-10 1Gi Bound ->claim1-10#uid1-10 bbc
                 pvc claim1-10#uid1-10 1Gi Pending vol=volume1-10 bbc bc",
            )
            .after(
                "pv  volume1-10 1Gi Bound ->claim1-10#uid1-10 bbc
                 pvc claim1-10#uid1-10 1Gi Bound vol=volume1-10 bbc bc",
            )
            .events(&[]),
    ]
}

fn selectors() -> Vec<Case> {
    vec![
        claim("1-11 bind when selector matches", "claim1-1")
            .before(
                "pv  volume1-1 1Gi Available label=foo:true label=bar:false
                 pvc claim1-1#uid1-1 1Gi Pending sel=foo:true sel=bar:false",
            )
            .after(
                "pv  volume1-1 1Gi Bound ->claim1-1#uid1-1 bbc
                 pvc claim1-1#uid1-1 1Gi Bound vol=volume1-1 bbc bc",
            )
            .events(&[]),
        claim("1-12 do not bind when selector does not match", "claim1-1")
            .before(
                "pv  volume1-1 1Gi Available
                 pvc claim1-1#uid1-1 1Gi Pending sel=foo:true sel=bar:false",
            )
            .unchanged()
            .events(&["Normal FailedBinding"]),
    ]
}

fn delayed() -> Vec<Case> {
    vec![
        claim("1-13 delayed binding", "claim1-1")
            .before(
                "sc  wait kubernetes.io/no-provisioner wffc
                 pv  volume1-1 1Gi Available class=wait
                 pvc claim1-1#uid1-1 1Gi Pending class=wait",
            )
            .unchanged()
            .events(&["Normal WaitForFirstConsumer"]),
        claim("1-14 successful prebound PV", "claim1-1")
            .before(
                "sc  wait kubernetes.io/no-provisioner wffc
                 pv  volume1-1 1Gi Available ->claim1-1 class=wait
                 pvc claim1-1#uid1-1 1Gi Pending class=wait",
            )
            .after(
                "pv  volume1-1 1Gi Bound ->claim1-1#uid1-1 class=wait
                 pvc claim1-1#uid1-1 1Gi Bound vol=volume1-1 class=wait bbc bc",
            )
            .events(&[]),
        claim("1-18 successful pre-bound PV to PVC provisioning", "claim1-18")
            .before(
                "sc  wait kubernetes.io/no-provisioner wffc
                 pv  volume1-18 1Gi Available ->claim1-18#uid1-18 class=wait
                 pvc claim1-18#uid1-18 1Gi Pending class=wait node=node1",
            )
            .after(
                "pv  volume1-18 1Gi Bound ->claim1-18#uid1-18 class=wait
                 pvc claim1-18#uid1-18 1Gi Bound vol=volume1-18 class=wait node=node1 bbc bc",
            )
            .events(&[]),
    ]
}

fn named_and_unavailable() -> Vec<Case> {
    vec![
        claim("1-15 successful prebound PVC", "claim1-15")
            .before(
                "pv  volume1-15_1 10Gi Available
                 pv  volume1-15_2 1Gi Available
                 pvc claim1-15#uid1-15 1Gi Pending vol=volume1-15_1",
            )
            .after(
                "pv  volume1-15_1 10Gi Bound ->claim1-15#uid1-15 bbc
                 pv  volume1-15_2 1Gi Available
                 pvc claim1-15#uid1-15 1Gi Bound vol=volume1-15_1 got=10Gi/RWO,ROX bc",
            )
            .events(&[]),
        claim("1-16 prebound PVC with another access mode", "claim1-16")
            .before(
                "pv  volume1-16 1Gi Available
                 pvc claim1-16#uid1-16 1Gi Pending vol=volume1-16 modes=RWX",
            )
            .unchanged()
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume1-16\": incompatible access"]),
        claim("1-17 skip non-available (difference: a new volume need not be marked Available)", "claim1-17")
            .before(
                "pv  volume1-17-pending 1Gi Pending
                 pv  volume1-17-failed 1Gi Failed
                 pv  volume1-17-released 1Gi Released
                 pv  volume1-17-empty 1Gi -
                 pvc claim1-17#uid1-17 1Gi Pending",
            )
            .after(
                "pv  volume1-17-pending 1Gi Pending
                 pv  volume1-17-failed 1Gi Failed
                 pv  volume1-17-released 1Gi Released
                 pv  volume1-17-empty 1Gi Bound ->claim1-17#uid1-17 bbc
                 pvc claim1-17#uid1-17 1Gi Bound vol=volume1-17-empty bbc bc",
            )
            .events(&[])
            // The others are not reserved.
            .stable(
                "pv  volume1-17-pending 1Gi Available
                 pv  volume1-17-failed 1Gi Available
                 pv  volume1-17-released 1Gi Available
                 pv  volume1-17-empty 1Gi Bound ->claim1-17#uid1-17 bbc
                 pvc claim1-17#uid1-17 1Gi Bound vol=volume1-17-empty bbc bc",
            ),
        claim("1-17 skip non-available (volumes that were used before)", "claim1-17")
            .before(
                "pv  volume1-17-failed 1Gi Failed
                 pv  volume1-17-released 1Gi Released
                 pvc claim1-17#uid1-17 1Gi Pending",
            )
            .unchanged()
            .events(&["Normal FailedBinding"])
            // They are not reserved and become Available, and then the claim is bound to the first.
            .stable(
                "pv  volume1-17-failed 1Gi Bound ->claim1-17#uid1-17 bbc
                 pv  volume1-17-released 1Gi Available
                 pvc claim1-17#uid1-17 1Gi Bound vol=volume1-17-failed bbc bc",
            ),
    ]
}
