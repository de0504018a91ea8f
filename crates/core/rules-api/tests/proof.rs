//! The proof that a volume is released: what live reads must have shown, case by case. Destroying data hangs on it.

use bindery_model::{ClaimKey, Kind, Object, ObjectKey, ReclaimPolicy, Volume};
use bindery_rules_api::{Delete, LiveReads, NotReleased, ReleaseProof, Rule};
use serde_json::{Value, json};

static PURPOSE: Rule = Rule { name: "test.delete", why: "A test needs a purpose." };

/// A released volume as it is known, at version 5.
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

/// The known volume, with something else about it.
fn but(patch: Value) -> Value {
    let mut volume = released();
    json_patch::merge(&mut volume, &patch);
    volume
}

fn claim(uid: &str, volume: Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": "c", "uid": uid, "resourceVersion": "6"}, "spec": {"volumeName": volume}})
}

fn decode(kind: Kind, json: &Value) -> Object {
    Object::from_json(kind, json.to_string().as_bytes()).expect("it has a name")
}

fn volume(json: &Value) -> Volume {
    Volume::from_json(json.to_string().as_bytes()).expect("it has a name")
}

/// What a live read found: there was none, it found nothing, or an object.
enum Read {
    Not,
    Nothing,
    Found(Value),
}
use Read::{Found, Not, Nothing};

fn live_reads(live_volume: &Read, live_claim: &Read) -> LiveReads {
    let mut live_reads = LiveReads::default();
    for (key, read) in [(ObjectKey::volume("v"), live_volume), (ObjectKey::from(ClaimKey::new("ns", "c")), live_claim)]
    {
        match read {
            Not => {}
            Nothing => live_reads.note_read(key, None),
            Found(json) => live_reads.note_read(key.clone(), Some(decode(key.kind, json))),
        }
    }
    live_reads
}

#[test]
fn there_is_no_proof_unless_live_reads_leave_no_doubt() {
    let read_claim = || NotReleased::ReadClaim(ClaimKey::new("ns", "c"));
    let cases = [
        ("nothing was read", released(), Not, Not, NotReleased::ReadVolume),
        ("only the claim was read", released(), Not, Nothing, NotReleased::ReadVolume),
        ("only the volume was read", released(), Found(released()), Not, read_claim()),
        ("the volume is gone", released(), Nothing, Nothing, NotReleased::VolumeGone),
        (
            "another volume has its name",
            released(),
            Found(but(json!({"metadata": {"uid": "other"}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "it belongs to another claim",
            released(),
            Found(but(json!({"spec": {"claimRef": {"uid": "other"}}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "it belongs to none",
            released(),
            Found(but(json!({"spec": {"claimRef": null}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "its policy was changed meanwhile",
            released(),
            Found(but(json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "it is Bound",
            released(),
            Found(but(json!({"status": {"phase": "Bound"}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "it is Available",
            released(),
            Found(but(json!({"status": {"phase": "Available"}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "it cannot be understood",
            released(),
            Found(but(json!({"spec": {"capacity": {"storage": "10Xi"}}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        (
            "its reference names nobody for good",
            but(json!({"spec": {"claimRef": {"uid": null}}})),
            Found(but(json!({"spec": {"claimRef": {"uid": null}}}))),
            Nothing,
            NotReleased::VolumeChanged,
        ),
        ("its claim has it", released(), Found(released()), Found(claim("cu", json!("v"))), NotReleased::ClaimLives),
        (
            "its claim may yet get it",
            released(),
            Found(released()),
            Found(claim("cu", json!(null))),
            NotReleased::ClaimLives,
        ),
        (
            "its claim cannot be understood",
            released(),
            Found(released()),
            Found(claim("cu", json!(["v"]))),
            NotReleased::ClaimLives,
        ),
        (
            "another claim has its claim's name and cannot be understood",
            released(),
            Found(released()),
            Found(claim("other", json!({}))),
            NotReleased::ClaimLives,
        ),
    ];
    for (case, known, live_volume, live_claim, expected) in cases {
        let found = ReleaseProof::find(&volume(&known), &live_reads(&live_volume, &live_claim));
        assert_eq!(found, Err(expected), "{case}");
    }
}

#[test]
fn there_is_proof_when_its_claim_is_gone_or_has_another_volume() {
    let newer = || but(json!({"metadata": {"resourceVersion": "9"}}));
    let failed = but(json!({"status": {"phase": "Failed"}}));
    let cases = [
        ("its claim is gone", released(), newer(), Nothing),
        ("reclaiming it failed before", failed, newer(), Nothing),
        ("another claim has its claim's name", released(), newer(), Found(claim("other", json!("v")))),
        ("its claim has another volume", released(), newer(), Found(claim("cu", json!("w")))),
    ];
    for (case, known, live, live_claim) in cases {
        let proof = ReleaseProof::find(&volume(&known), &live_reads(&Found(live), &live_claim)).expect(case);
        assert_eq!((proof.name().as_str(), proof.volume().uid.as_str()), ("v", "vu"), "{case}");
        assert_eq!(proof.volume().version, 9, "{case}: what is destroyed is what was read live");
        let delete = Delete::volume(&PURPOSE, proof.clone()).expect(case);
        assert_eq!(delete.proof(), &proof, "{case}");
    }
}

#[test]
fn proof_is_no_licence_to_delete_what_is_to_be_kept() {
    for (policy, is_deleted) in [("Delete", true), ("Retain", false), ("Recycle", false), ("", false), ("Burn", false)]
    {
        let json = but(json!({"spec": {"persistentVolumeReclaimPolicy": policy}}));
        let known = volume(&json);
        let proof = ReleaseProof::find(&known, &live_reads(&Found(json), &Nothing)).expect("it is released");
        assert!(proof.has_policy(&known.policy), "{policy:?}");
        assert_eq!(proof.has_policy(&ReclaimPolicy::Delete), is_deleted, "{policy:?}");
        assert_eq!(Delete::volume(&PURPOSE, proof).is_some(), is_deleted, "{policy:?}");
    }
}
