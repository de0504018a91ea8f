//! pv_controller_test.go, TestRetroactiveStorageClassAssignment: claims without a class get the
//! default class. The classes have no provisioner, which is reported in the same sync.

use crate::case::{Case, claim};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [assigned(), was_bound(), has_class()].into_iter().flatten().collect()
}

fn assigned() -> Vec<Case> {
    vec![
        claim("15-1 class is not assigned if there are no default classes", "claim15-1")
            .before("pvc claim15-1#uid15-1 1Gi Pending")
            .unchanged()
            .events(&["Normal FailedBinding"]),
        claim("15-2 class is assigned if there are multiple default classes", "claim15-2")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  silver kubernetes.io/no-provisioner default
                 pvc claim15-2#uid15-2 1Gi Pending",
            )
            .after("pvc claim15-2#uid15-2 1Gi Pending class=gold")
            .events(&["Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner"]),
        claim("15-5 class is assigned if there is a default", "claim15-5")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  silver kubernetes.io/no-provisioner
                 pvc claim15-5#uid15-5 1Gi Pending",
            )
            .after("pvc claim15-5#uid15-5 1Gi Pending class=gold")
            .events(&["Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner"]),
    ]
}

fn was_bound() -> Vec<Case> {
    vec![
        claim("15-3 class is not assigned if claim is already bound", "claim15-3")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  silver kubernetes.io/no-provisioner
                 pvc claim15-3#uid15-3 1Gi Bound vol=test class=copper bbc bc",
            )
            .after("pvc claim15-3#uid15-3 1Gi Lost vol=test class=copper bbc bc")
            .events(&["Warning ClaimLost Bound claim has lost its PersistentVolume."]),
        claim("15-4 class is not assigned if claim is already bound but annotations are missing", "claim15-4")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  silver kubernetes.io/no-provisioner
                 pvc claim15-4#uid15-4 1Gi Bound vol=test class=copper",
            )
            .after("pvc claim15-4#uid15-4 1Gi Pending vol=test class=copper")
            .events(&[]),
    ]
}

fn has_class() -> Vec<Case> {
    vec![
        claim("15-6 class is not changed if claim is not bound but already has a class", "claim15-6")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  copper kubernetes.io/no-provisioner
                 pvc claim15-6#uid15-6 1Gi Pending class=copper",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner"]),
        claim("15-7 class is not changed if claim is not bound but already has the beta annotation", "claim15-7")
            .before(
                "sc  gold kubernetes.io/no-provisioner default
                 sc  copper kubernetes.io/no-provisioner
                 pvc claim15-7#uid15-7 1Gi Pending beta-class=yes",
            )
            .unchanged()
            .events(&["Warning ProvisioningFailed storageclass.storage.k8s.io \"yes\" not found"]),
    ]
}
