//! What is said about volumes.

use super::check;

#[test]
fn a_free_volume_tells_who_wants_it() {
    check(
        r"
            pvc a#1 5Gi Pending
            pvc b#2 9Gi Pending
            pv x 5Gi Pending
        ",
        "pv/x",
        r"
            x is Pending   [volume.unclaimed.hand-off]
            The volume is free and a claim waits for one like it: that claim is decided about first.
              offers     5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bind       would bind to default/a
              next       default/a is decided about first: it may take this volume
              default/a  would bind to it
              default/b  needs 9Gi, has 5Gi
        ",
    );
}

#[test]
fn a_volume_nobody_can_use_tells_what_the_claims_lack() {
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
            The volume belongs to nobody: it is Available.
              offers     2Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  needs 5Gi, has 2Gi
              default/b  needs 9Gi, has 2Gi
              default/c  lacks ReadWriteMany
            It binds when a claim without a class for 2Gi or less needs it.
        ",
    );
}

#[test]
fn a_retained_volume_waits_for_a_person() {
    check(
        r"
            pv x 5Gi Released ->a#1
        ",
        "pv/x",
        r"
            x is Released   [reclaim.retain]
            The volume is retained: a person decides what becomes of it.
              offers     5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  does not exist
            It is offered again when somebody removes spec.claimRef; what it holds stays on it.
        ",
    );
}

#[test]
fn a_reserved_volume_waits_for_its_claim() {
    check(
        r"
            pv x 5Gi Available ->a
            pvc a#7 10Gi Pending
        ",
        "pv/x",
        r"
            x is Available   [volume.reserved.available]
            The volume is reserved for a claim by name: it is Available until the claim takes it.
              offers     5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              next       nothing, until something changes
              default/a  needs 10Gi, has 5Gi
            It binds when claim default/a takes it; no other can have it.
        ",
    );
}

#[test]
fn a_bound_volume_is_bound() {
    check(
        r"
            pv x 5Gi Bound ->a#1
            pvc a#1 5Gi Bound vol=x bc
        ",
        "pv/x",
        r"
            x is Bound   [volume.claimed.bound]
            The volume belongs to a claim that points at it: it is Bound.
              offers     5Gi, ReadWriteOnce, ReadOnlyMany, Filesystem, no class, policy Retain
              bound      is bound to default/a
              default/a  is bound to it
        ",
    );
}

#[test]
fn a_malformed_volume_tells_its_flaw() {
    check(
        r"
            pv x lots Available
        ",
        "pv/x",
        r#"
            x is Available   [volume.malformed]
            A field of the volume cannot be understood: it is left alone until that is mended.
              note  spec.capacity.storage: "lots": it is not a number
              next  nothing, until something changes
            It goes on when that field is mended.
        "#,
    );
}
