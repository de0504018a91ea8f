//! Set 14: volume modes. The default is Filesystem.

use crate::case::{Case, claim, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [any(), with_classes(), named(), reserved(), volumes()].into_iter().flatten().collect()
}

fn any() -> Vec<Case> {
    vec![
        claim("14-1 binding to volumeMode block", "claim14-1")
            .before(
                "pv  volume14-1 10Gi Available mode=Block
                 pvc claim14-1#uid14-1 10Gi Pending mode=Block",
            )
            .after(
                "pv  volume14-1 10Gi Bound ->claim14-1#uid14-1 mode=Block bbc
                 pvc claim14-1#uid14-1 10Gi Bound vol=volume14-1 mode=Block bbc bc",
            )
            .events(&[]),
        claim("14-2 binding to volumeMode filesystem", "claim14-2")
            .before(
                "pv  volume14-2 10Gi Available
                 pvc claim14-2#uid14-2 10Gi Pending",
            )
            .after(
                "pv  volume14-2 10Gi Bound ->claim14-2#uid14-2 bbc
                 pvc claim14-2#uid14-2 10Gi Bound vol=volume14-2 bbc bc",
            )
            .events(&[]),
        claim("14-3 do not bind pv volumeMode filesystem and pvc volumeMode block", "claim14-3")
            .before(
                "pv  volume14-3 10Gi Available
                 pvc claim14-3#uid14-3 10Gi Pending mode=Block",
            )
            .unchanged()
            .events(&["Normal FailedBinding"]),
        claim("14-4 do not bind pv volumeMode block and pvc volumeMode filesystem", "claim14-4")
            .before(
                "pv  volume14-4 10Gi Available mode=Block
                 pvc claim14-4#uid14-4 10Gi Pending",
            )
            .unchanged()
            .events(&["Normal FailedBinding"]),
    ]
}

/// The classes do not exist.
fn with_classes() -> Vec<Case> {
    vec![
        claim("14-5 do not bind when matching class but not volumeMode", "claim14-5")
            .before(
                "pv  volume14-5 10Gi Available class=gold
                 pvc claim14-5#uid14-5 10Gi Pending class=gold mode=Block",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed storageclass.storage.k8s.io \"gold\" not found"]),
        claim("14-5-1 do not bind when matching volumeModes but class does not match", "claim14-5-1")
            .before(
                "pv  volume14-5-1 10Gi Available class=gold
                 pvc claim14-5-1#uid14-5-1 10Gi Pending class=silver",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed storageclass.storage.k8s.io \"silver\" not found"]),
        claim("14-5-2 do not bind when pvc is prebound to pv but class does not match", "claim14-5-2")
            .before(
                "pv  volume14-5-2 10Gi Available class=gold
                 pvc claim14-5-2#uid14-5-2 10Gi Pending vol=volume14-5-2 class=silver",
            )
            .unchanged()
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume14-5-2\": storageClassName"]),
    ]
}

fn named() -> Vec<Case> {
    vec![
        claim("14-8 do not bind when pvc is prebound to pv with mismatching volumeModes", "claim14-8")
            .before(
                "pv  volume14-8 10Gi Available mode=Block
                 pvc claim14-8#uid14-8 10Gi Pending vol=volume14-8",
            )
            .unchanged()
            .events(&["Warning VolumeMismatch Cannot bind to requested volume \"volume14-8\": incompatible volume"]),
        claim("14-9 bind when pvc is prebound to pv with matching volumeModes block", "claim14-9")
            .before(
                "pv  volume14-9 10Gi Available mode=Block
                 pvc claim14-9#uid14-9 10Gi Pending vol=volume14-9 mode=Block",
            )
            .after(
                "pv  volume14-9 10Gi Bound ->claim14-9#uid14-9 mode=Block bbc
                 pvc claim14-9#uid14-9 10Gi Bound vol=volume14-9 mode=Block bc",
            )
            .events(&[]),
        claim("14-11 bind when pvc is prebound to pv with matching volumeModes filesystem", "claim14-11")
            .before(
                "pv  volume14-11 10Gi Available
                 pvc claim14-11#uid14-11 10Gi Pending vol=volume14-11",
            )
            .after(
                "pv  volume14-11 10Gi Bound ->claim14-11#uid14-11 bbc
                 pvc claim14-11#uid14-11 10Gi Bound vol=volume14-11 bc",
            )
            .events(&[]),
    ]
}

fn reserved() -> Vec<Case> {
    vec![
        claim("14-7 bind when pv volume is prebound and volumeModes match", "claim14-7")
            .before(
                "pv  volume14-7 10Gi Available ->claim14-7 mode=Block
                 pvc claim14-7#uid14-7 10Gi Pending mode=Block",
            )
            .after(
                "pv  volume14-7 10Gi Bound ->claim14-7#uid14-7 mode=Block
                 pvc claim14-7#uid14-7 10Gi Bound vol=volume14-7 mode=Block bbc bc",
            )
            .events(&[]),
        claim("14-8-1 do not bind when pv is prebound to pvc with mismatching volumeModes", "claim14-8-1")
            .before(
                "pv  volume14-8-1 10Gi Available ->claim14-8-1 mode=Block
                 pvc claim14-8-1#uid14-8-1 10Gi Pending",
            )
            .unchanged()
            .events(&["Normal FailedBinding"]),
        claim("14-10 bind when pv is prebound to pvc with matching volumeModes block", "claim14-10")
            .before(
                "pv  volume14-10 10Gi Available ->claim14-10 mode=Block
                 pvc claim14-10#uid14-10 10Gi Pending mode=Block",
            )
            .after(
                "pv  volume14-10 10Gi Bound ->claim14-10#uid14-10 mode=Block
                 pvc claim14-10#uid14-10 10Gi Bound vol=volume14-10 mode=Block bbc bc",
            )
            .events(&[]),
        claim("14-12 bind when pv is prebound to pvc with matching volumeModes filesystem", "claim14-12")
            .before(
                "pv  volume14-12 10Gi Available ->claim14-12
                 pvc claim14-12#uid14-12 10Gi Pending",
            )
            .after(
                "pv  volume14-12 10Gi Bound ->claim14-12#uid14-12
                 pvc claim14-12#uid14-12 10Gi Bound vol=volume14-12 bbc bc",
            )
            .events(&[]),
    ]
}

/// A sync of the volume only warns about a mismatch: the sync of the claim binds.
fn volumes() -> Vec<Case> {
    vec![
        volume("14-13 output warning when pv is prebound to pvc with different volumeModes", "volume14-13")
            .before(
                "pv  volume14-13 10Gi Available ->claim14-13#uid14-13 bbc
                 pvc claim14-13#uid14-13 10Gi Pending mode=Block",
            )
            .unchanged()
            .events(&[
                "Warning VolumeMismatch Cannot bind PersistentVolume to requested PersistentVolumeClaim \"claim14-13\"",
                "Warning VolumeMismatch Cannot bind PersistentVolume \"volume14-13\" to requested",
            ]),
        volume("14-13-1 output warning when pv is prebound to pvc with different volumeModes", "volume14-13-1")
            .before(
                "pv  volume14-13-1 10Gi Available ->claim14-13-1#uid14-13-1 mode=Block bbc
                 pvc claim14-13-1#uid14-13-1 10Gi Pending",
            )
            .unchanged()
            .events(&["Warning VolumeMismatch", "Warning VolumeMismatch"]),
        volume("14-14 wait for syncClaim without warning when volumeModes match, block", "volume14-14")
            .before(
                "pv  volume14-14 10Gi Available ->claim14-14#uid14-14 mode=Block bbc
                 pvc claim14-14#uid14-14 10Gi Pending mode=Block",
            )
            .unchanged()
            .events(&[])
            .stable(
                "pv  volume14-14 10Gi Bound ->claim14-14#uid14-14 mode=Block bbc
                 pvc claim14-14#uid14-14 10Gi Bound vol=volume14-14 mode=Block bbc bc",
            ),
        volume("14-14-1 wait for syncClaim without warning when volumeModes match, file", "volume14-14-1")
            .before(
                "pv  volume14-14-1 10Gi Available ->claim14-14-1#uid14-14-1 bbc
                 pvc claim14-14-1#uid14-14-1 10Gi Pending",
            )
            .unchanged()
            .events(&[])
            .stable(
                "pv  volume14-14-1 10Gi Bound ->claim14-14-1#uid14-14-1 bbc
                 pvc claim14-14-1#uid14-14-1 10Gi Bound vol=volume14-14-1 bbc bc",
            ),
    ]
}
