//! Explanations of claims.

use super::{check, explain};

#[test]
fn best_candidate_comes_first_and_other_classes_last() {
    check(
        r"
            sc fast kubernetes.io/no-provisioner
            pvc data#1 10Gi Pending class=fast
            pv small 8Gi Available class=fast
            pv tiny 1Gi Available class=fast
            pv taken 10Gi Bound ->b#2 class=fast
            pvc b#2 10Gi Bound vol=taken bc class=fast
            pv slow 20Gi Available class=slow
        ",
        "pvc/data",
        r#"
            default/data is Pending   [provision.no-plugin]
            The StorageClass names an in-tree provisioner that cannot provision volumes, such as kubernetes.io/no-provisioner. The claim stays Pending until a matching volume is created or the class is replaced.
              requests  10Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, class "fast"
              event     ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner
              next      nothing, until something changes
              small     needs 10Gi, has 8Gi
              tiny      needs 10Gi, has 1Gi
              taken     reserved for default/b
              slow      other class "slow"
            It binds when a volume of class "fast" with 10Gi or more for ReadWriteOnce and ReadOnlyMany becomes Available.
        "#,
    );
}

#[test]
fn every_failed_check_shows_required_and_actual_value() {
    check(
        r"
            pvc data#1 5Gi Pending modes=RWX sel=disk:ssd
            pv a 10Gi Available modes=RWX label=disk:hdd
            pv b 10Gi Available
            pv c 10Gi Released modes=RWX label=disk:ssd
            pv d 10Gi Available modes=RWX label=disk:ssd mode=Block
            pv e 10Gi Available modes=RWX vac=gold
            pv f 10Gi Available modes=RWX deleting
            pv g lots Available
            pv h 1Gi Available modes=RWX ->x
        ",
        "pvc/data",
        r#"
            default/data is Pending   [claim.unbound.no-volume-fits]
            No available volume satisfies the claim, and it has no StorageClass that could provision one. The claim stays Pending until a matching volume appears.
              requests  5Gi, ReadWriteMany, Filesystem, no class, labels disk=ssd
              event     FailedBinding: no persistent volumes available for this claim and no storage class is set
              next      nothing, until something changes
              a         label disk: wants ssd, has hdd
              c         it is Released
              d         volume mode: wants Filesystem, has Block
              g         it cannot be read: spec.capacity.storage: "lots": it is not a number
              b         lacks ReadWriteMany; label disk: wants ssd, has none
              e         attributes class: wants none, has "gold"; label disk: wants ssd, has none
              f         it is being deleted; label disk: wants ssd, has none
              h         reserved for default/x; needs 5Gi, has 1Gi; label disk: wants ssd, has none
            It binds when a volume without a class with 5Gi or more for ReadWriteMany and labels disk=ssd becomes Available.
        "#,
    );
}

#[test]
fn expected_bind_shows_the_reason_and_rival_claims() {
    check(
        r"
            pvc a#1 5Gi Pending
            pvc b#2 5Gi Pending
            pv x 5Gi Available
            pv y 10Gi Available
            pv w 10Gi Available modes=RWO,ROX,RWX
        ",
        "pvc/a",
        r"
            default/a is Pending   [claim.unbound.fits]
            At least one available volume satisfies the claim. The claim is bound to the one with the fewest access modes, then the smallest capacity, then the first name.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bind      would bind to x, unless default/b binds it first
              next      updates PersistentVolume x: First, the volume's claimRef is set to the claim. From now on no other claim can be bound to the volume.
              x         fits
              w         fits, but x has fewer access modes
              y         fits, but x is smaller
        ",
    );
}

#[test]
fn volume_named_by_another_claim_is_no_candidate() {
    check(
        r"
            pvc a#1 5Gi Pending
            pvc b#2 5Gi Pending vol=x
            pv x 5Gi Available
        ",
        "pvc/a",
        r"
            default/a is Pending   [claim.unbound.no-volume-fits]
            No available volume satisfies the claim, and it has no StorageClass that could provision one. The claim stays Pending until a matching volume appears.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              event     FailedBinding: no persistent volumes available for this claim and no storage class is set
              next      nothing, until something changes
              x         named by default/b
            It binds when a volume without a class with 5Gi or more for ReadWriteOnce and ReadOnlyMany becomes Available.
        ",
    );
}

#[test]
fn named_volume_is_the_only_candidate() {
    check(
        r"
            pvc b#2 5Gi Pending vol=x
            pv x 2Gi Available
            pv y 5Gi Available
        ",
        "pvc/b",
        r#"
            default/b is Pending   [claim.named.mismatch]
            The volume in the claim's spec.volumeName is available but does not satisfy the claim. The claim stays Pending.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              event     VolumeMismatch: Cannot bind to requested volume "x": requested PV is too small
              next      nothing, until something changes
              x         needs 5Gi, has 2Gi
            It binds when PersistentVolume "x" satisfies its requirements.
        "#,
    );
}

#[test]
fn missing_named_volume_is_shown() {
    check(
        r"
            pvc b#2 5Gi Pending vol=x
        ",
        "pvc/b",
        r#"
            default/b is Pending   [claim.named.missing]
            The volume in the claim's spec.volumeName does not exist. The claim stays Pending until it does, and is not bound to another volume.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              next      nothing, until something changes
              x         does not exist
            It binds when PersistentVolume "x" exists and is not reserved for another claim.
        "#,
    );
}

#[test]
fn incomplete_bind_is_continued() {
    check(
        r"
            pvc a#1 5Gi Pending
            pv x 5Gi Bound ->a#1 bbc
        ",
        "pvc/a",
        r"
            default/a is Pending   [claim.unbound.reserved]
            The claimRef of a suitable volume names this claim. The claim is bound to it, even if other volumes match.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bind      would bind to x
              next      updates PersistentVolumeClaim default/a: Third, the claim's spec.volumeName is set to the volume. It cannot be changed afterwards.
              x         reserved for the claim
        ",
    );
}

#[test]
fn bound_claim_shows_its_volume() {
    check(
        r"
            pvc a#1 5Gi Bound vol=x bc bbc
            pv x 5Gi Bound ->a#1 bbc
        ",
        "pvc/a",
        r"
            default/a is Bound   [claim.bound.correct]
            The claim and its volume refer to each other. Any field of the bind that is still missing is written.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              bound     is bound to x
        ",
    );
}

#[test]
fn lost_claim_is_explained_by_a_live_read() {
    check(
        r"
            pvc b#2 5Gi Bound vol=x bc
        ",
        "pvc/b",
        r"
            default/b is Bound   [claim.bound.lost-volume]
            The claim was bound, and a live read shows that its volume does not exist. It is marked Lost.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class
              event     ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!
              next      updates PersistentVolumeClaim default/b: The claim has lost its volume. Its phase is set to Lost.
              x         does not exist
        ",
    );
}

#[test]
fn delayed_claim_shows_volumes_that_the_scheduler_may_choose() {
    check(
        r"
            sc late example.com/ex wffc
            pvc a#1 5Gi Pending class=late
            pod p claim=a
            pv x 5Gi Available class=late
            pv y 1Gi Available class=late
        ",
        "pvc/a",
        r#"
            default/a is Pending   [claim.unbound.waits-for-scheduling]
            The StorageClass uses WaitForFirstConsumer, and the pods that use the claim are not scheduled. The claim stays Pending until the scheduler selects a node.
              requests  5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, class "late"
              event     WaitForPodScheduled: waiting for pod p to be scheduled
              next      nothing, until something changes
              x         fits: a scheduler may choose it for the claim's pod
              y         needs 5Gi, has 1Gi
            It proceeds when a scheduler has chosen a node for its pod.
        "#,
    );
}

#[test]
fn claim_waits_for_its_provisioner() {
    check(
        r"
            sc fast example.com/ex
            pvc a#1 10Gi Pending class=fast sp=example.com/ex
        ",
        "pvc/a",
        r#"
            default/a is Pending   [provision.external.wait]
            A volume was requested from the external provisioner. The claim stays Pending until the provisioner creates it.
              requests  10Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, class "fast"
              event     ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/ex' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.
              next      nothing, until something changes
            It binds when provisioner example.com/ex has created a volume for it, or when a volume of class "fast" with 10Gi or more for ReadWriteOnce and ReadOnlyMany becomes Available.
        "#,
    );
}

#[test]
fn malformed_claim_shows_the_invalid_field() {
    check(
        r"
            pvc a#1 lots Pending
        ",
        "pvc/a",
        r#"
            default/a is Pending   [claim.malformed]
            A field of the claim cannot be parsed. The claim is not processed until the field is fixed.
              note  spec.resources.requests.storage: "lots": it is not a number
              next  nothing, until something changes
            It proceeds when that field is fixed.
        "#,
    );
}

#[test]
fn missing_object_is_reported() {
    check(
        r"
            pv x 1Gi Available
        ",
        "pvc/a",
        r"
            PersistentVolumeClaim default/a does not exist
        ",
    );
}

#[test]
fn many_candidates_are_grouped() {
    let mut state = String::from("sc fast kubernetes.io/no-provisioner\npvc a#1 10Gi Pending class=fast\n");
    for at in 0..30 {
        state += &format!("pv small-{at:02} {}Gi Available class=fast\n", at % 9 + 1);
        state += &format!("pv slow-{at:02} 10Gi Available class=slow\n");
        state += &format!("pv taken-{at:02} 10Gi Bound ->c{at}#u class=fast\n");
    }
    let text = explain(&state, "pvc/a");
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| line.contains("more  ") || line.contains("small")).collect();
    assert_eq!(lines.len(), 13, "{text}");
    assert_eq!(lines[0], "small-08  needs 10Gi, has 9Gi");
    assert_eq!(
        lines[10..],
        ["30 more   of class \"slow\"", "30 more   reserved for other claims", "20 more   that are too small"]
    );
}
