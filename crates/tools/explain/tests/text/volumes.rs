//! Explanations of volumes.

use super::check;

#[test]
fn available_volume_shows_waiting_claims() {
    check(
        r"
            pvc a#1 5Gi Pending
            pvc b#2 9Gi Pending
            pv x 5Gi Pending
        ",
        "pv/x",
        r"
            x is Pending   [volume.unclaimed.hand-off]
            The volume is unclaimed, and a Pending claim may match it. The claim is processed first.
              provides   5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bind       would bind to default/a
              next       claim default/a is decided first, because it may bind this volume
              default/a  would bind to it
              default/b  needs 9Gi, has 5Gi
        ",
    );
}

#[test]
fn unsuitable_volume_shows_why_claims_do_not_fit() {
    check(
        r"
            pvc a#1 5Gi Pending
            pvc b#2 9Gi Pending
            pvc c#3 1Gi Pending modes=RWX
            pv y 2Gi Available
        ",
        "pv/y",
        r"
            y is Available   [volume.unclaimed.available]
            The volume has no claimRef. Its phase is Available.
              provides   2Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  needs 5Gi, has 2Gi
              default/b  needs 9Gi, has 2Gi
              default/c  lacks ReadWriteMany
            It binds when a claim without a class requests 2Gi or less.
        ",
    );
}

#[test]
fn retained_volume_waits_for_an_administrator() {
    check(
        r"
            pv x 5Gi Released ->a#1
        ",
        "pv/x",
        r"
            x is Released   [reclaim.retain]
            The volume's reclaim policy is Retain. It stays Released until an administrator deletes it or removes its claimRef.
              provides   5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  does not exist
            It becomes Available again when spec.claimRef is removed; its data is kept.
        ",
    );
}

#[test]
fn reserved_volume_waits_for_its_claim() {
    check(
        r"
            pv x 5Gi Available ->a
            pvc a#7 10Gi Pending
        ",
        "pv/x",
        r"
            x is Available   [volume.reserved.available]
            The volume's claimRef names a claim without a UID. The volume is Available until that claim is bound to it.
              provides   5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  needs 10Gi, has 5Gi
            It binds when claim default/a can use it; no other claim can.
        ",
    );
}

#[test]
fn bound_volume_shows_its_claim() {
    check(
        r"
            pv x 5Gi Bound ->a#1
            pvc a#1 5Gi Bound vol=x bc
        ",
        "pv/x",
        r"
            x is Bound   [volume.claimed.bound]
            The volume and its claim refer to each other. The volume's phase is Bound.
              provides   5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bound      is bound to default/a
              default/a  is bound to it
        ",
    );
}

#[test]
fn malformed_volume_shows_the_invalid_field() {
    check(
        r"
            pv x lots Available
        ",
        "pv/x",
        r#"
            x is Available   [volume.malformed]
            A field of the volume cannot be parsed. The volume is not processed until the field is fixed.
              note  spec.capacity.storage: "lots": it is not a number
              next  nothing, until something changes
            It proceeds when that field is fixed.
        "#,
    );
}
