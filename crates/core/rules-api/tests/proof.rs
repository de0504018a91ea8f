//! What live reads must show to prove that a volume is released. Deleting data depends on it.

use bindery_model::{ClaimKey, Kind, Object, ObjectKey, ReclaimPolicy, Volume};
use bindery_rules_api::{Delete, LiveReads, NotReleased, ReleaseProof, Rule};
use serde_json::{Value, json};

static PURPOSE: Rule = Rule { name: "test.delete", why: "A test needs a purpose." };

/// A released volume as cached, at resourceVersion 5.
fn released() -> Value {
    json!({
        "metadata": {"name": "v", "uid": "vu", "resourceVersion": "5"},
        "spec": {
            "claimRef": {"namespace": "ns", "name": "c", "uid": "cu"},
            "persistentVolumeReclaimPolicy": "Delete",
        },
        "status": {"phase": "Released"},
    })
}

/// The cached volume with a change.
fn but(patch: Value) -> Value {
    let mut volume = released();
    json_patch::merge(&mut volume, &patch);
    volume
}

fn claim(uid: &str, volume: Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": "c", "uid": uid, "resourceVersion": "6"}, "spec": {"volumeName": volume}})
}

fn decode(kind: Kind, json: &Value) -> Object {
    Object::from_json(kind, json.to_string().as_bytes()).expect("a valid object")
}

fn volume(json: &Value) -> Volume {
    Volume::from_json(json.to_string().as_bytes()).expect("a valid object")
}

/// A live read: not made, not found, or an object.
enum Read {
    Missing,
    NotFound,
    Found(Value),
}
use Read::{Found, Missing, NotFound};

fn live_reads(live_volume: &Read, live_claim: &Read) -> LiveReads {
    let mut live_reads = LiveReads::default();
    for (key, read) in [(ObjectKey::volume("v"), live_volume), (ObjectKey::from(ClaimKey::new("ns", "c")), live_claim)]
    {
        match read {
            Missing => {}
            NotFound => live_reads.note_read(key, None),
            Found(json) => live_reads.note_read(key.clone(), Some(decode(key.kind, json))),
        }
    }
    live_reads
}

#[test]
fn no_proof_unless_live_reads_show_a_released_volume() {
    let read_claim = || NotReleased::ReadClaim(ClaimKey::new("ns", "c"));
    let cases = [
        ("nothing was read", released(), Missing, Missing, NotReleased::ReadVolume),
        ("only the claim was read", released(), Missing, NotFound, NotReleased::ReadVolume),
        ("only the volume was read", released(), Found(released()), Missing, read_claim()),
        ("the volume was deleted", released(), NotFound, NotFound, NotReleased::VolumeDeleted),
        (
            "another volume has its name",
            released(),
            Found(but(json!({"metadata": {"uid": "other"}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "its claimRef names another claim",
            released(),
            Found(but(json!({"spec": {"claimRef": {"uid": "other"}}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "it has no claimRef",
            released(),
            Found(but(json!({"spec": {"claimRef": null}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "its reclaim policy was changed",
            released(),
            Found(but(json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "it is Bound",
            released(),
            Found(but(json!({"status": {"phase": "Bound"}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "it is Available",
            released(),
            Found(but(json!({"status": {"phase": "Available"}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "it cannot be parsed",
            released(),
            Found(but(json!({"spec": {"capacity": {"storage": "10Xi"}}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "its claimRef has no UID",
            but(json!({"spec": {"claimRef": {"uid": null}}})),
            Found(but(json!({"spec": {"claimRef": {"uid": null}}}))),
            NotFound,
            NotReleased::VolumeChanged,
        ),
        (
            "its claim is bound to it",
            released(),
            Found(released()),
            Found(claim("cu", json!("v"))),
            NotReleased::ClaimExists,
        ),
        (
            "its claim is unbound",
            released(),
            Found(released()),
            Found(claim("cu", json!(null))),
            NotReleased::ClaimExists,
        ),
        (
            "its claim cannot be parsed",
            released(),
            Found(released()),
            Found(claim("cu", json!(["v"]))),
            NotReleased::ClaimExists,
        ),
        (
            "another claim has its claim's name and cannot be parsed",
            released(),
            Found(released()),
            Found(claim("other", json!({}))),
            NotReleased::ClaimExists,
        ),
    ];
    for (case, known, live_volume, live_claim, expected) in cases {
        let found = ReleaseProof::find(&volume(&known), &live_reads(&live_volume, &live_claim));
        assert_eq!(found, Err(expected), "{case}");
    }
}

#[test]
fn proof_when_the_claim_is_deleted_or_bound_to_another_volume() {
    let newer = || but(json!({"metadata": {"resourceVersion": "9"}}));
    let failed = but(json!({"status": {"phase": "Failed"}}));
    let cases = [
        ("its claim was deleted", released(), newer(), NotFound),
        ("reclaiming it failed before", failed, newer(), NotFound),
        ("another claim has its claim's name", released(), newer(), Found(claim("other", json!("v")))),
        ("its claim is bound to another volume", released(), newer(), Found(claim("cu", json!("w")))),
    ];
    for (case, known, live, live_claim) in cases {
        let proof = ReleaseProof::find(&volume(&known), &live_reads(&Found(live), &live_claim)).expect(case);
        assert_eq!((proof.name().as_str(), proof.volume().uid.as_str()), ("v", "vu"), "{case}");
        assert_eq!(proof.volume().version, 9, "{case}: the proof is about the version read live");
        let delete = Delete::volume(&PURPOSE, proof.clone()).expect(case);
        assert_eq!(delete.proof(), &proof, "{case}");
    }
}

#[test]
fn only_policy_delete_allows_deletion() {
    for (policy, is_deleted) in [("Delete", true), ("Retain", false), ("Recycle", false), ("", false), ("Burn", false)]
    {
        let json = but(json!({"spec": {"persistentVolumeReclaimPolicy": policy}}));
        let known = volume(&json);
        let proof = ReleaseProof::find(&known, &live_reads(&Found(json), &NotFound)).expect("it is released");
        assert!(proof.has_policy(&known.policy), "{policy:?}");
        assert_eq!(proof.has_policy(&ReclaimPolicy::Delete), is_deleted, "{policy:?}");
        assert_eq!(Delete::volume(&PURPOSE, proof).is_some(), is_deleted, "{policy:?}");
    }
}
