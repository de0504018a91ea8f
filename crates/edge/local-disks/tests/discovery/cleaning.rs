//! Which disk is behind a volume, and when it is not to be touched.

use std::collections::BTreeSet;

use bindery_local_disks::Cleaner;
use bindery_local_disks::clean::{Target, policy_flaw, target, unchanged};
use bindery_local_disks::config::DEFAULT_CLEANER;
use bindery_local_disks::rules::cleaning as rules;
use bindery_model::event::Reason;
use bindery_rules_api::Rule;
use serde_json::{Value, json};

use crate::world::{US, World, of, volume, world};

fn disk() -> Target {
    let cleaner = Cleaner::Command(vec![DEFAULT_CLEANER.into()]);
    Target { mount_dir: "/seen".into(), entry: "disk".into(), cleaner }
}

fn cases() -> Vec<(World, Value, Result<Target, &'static Rule>)> {
    let ours = || of("v", US, "/mnt/fast/disk");
    let at = |path: &str| of("v", US, path);
    let mut other_class = ours();
    other_class["spec"]["storageClassName"] = "slow".into();
    let mut host_path = ours();
    host_path["spec"]["local"] = Value::Null;
    host_path["spec"]["hostPath"] = json!({"path": "/mnt/fast/disk"});
    let outside = || Err(&rules::OUTSIDE);
    vec![
        (world(), ours(), Ok(disk())),
        (world().volume(ours()), ours(), Ok(disk())),
        (world(), at("/mnt/fast//disk/"), Ok(disk())),
        (world(), host_path, Err(&rules::NOT_LOCAL)),
        (world(), other_class, Err(&rules::CLASS_UNKNOWN)),
        (world(), at("/mnt/fast"), outside()),
        (world(), at("/mnt/fast/"), outside()),
        (world(), at("/mnt/fast/."), outside()),
        (world(), at("/mnt/fast/.."), outside()),
        (world(), at("/mnt/fast/../fast/disk"), outside()),
        (world(), at("/mnt/fast/disk/.."), outside()),
        (world(), at("/mnt/fast/disk/inside"), outside()),
        (world(), at("/mnt/fast-other/disk"), outside()),
        (world(), at("/mnt/fas"), outside()),
        (world(), at("mnt/fast/disk"), outside()),
        (world(), at("/"), outside()),
        (world(), at(""), outside()),
        (world().volume(ours()).volume(of("w", "a person", "/mnt/fast/disk/")), ours(), Err(&rules::SHARED)),
    ]
}

#[test]
fn only_an_entry_of_the_class_s_directory_is_touched() {
    for (world, json, expected) in cases() {
        let found = target(&world.config(), &world.known(), &volume(&json));
        assert_eq!(found.as_ref().map_err(|refusal| refusal.rule), expected.as_ref().map_err(|rule| *rule), "{json}");
    }
}

#[test]
fn every_rule_is_exercised() {
    let of_disks = cases().into_iter().map(|(_, _, found)| found.map_or_else(|rule| rule.name, |_| rules::CLEAN.name));
    let of_held = changes().into_iter().filter_map(|(_, is_as_it_was)| (!is_as_it_was).then_some(rules::CHANGED.name));
    // That the policy is told by its rule is asserted where it is.
    let seen: BTreeSet<&str> = of_disks.chain(of_held).chain([rules::POLICY.name]).collect();
    assert_eq!(seen, rules::ALL.iter().map(|rule| rule.name).collect());
}

/// A released volume.
fn released() -> Value {
    let mut json = of("v", US, "/mnt/fast/disk");
    json["metadata"]["resourceVersion"] = "7".into();
    json["status"] = json!({"phase": "Released"});
    json
}

/// What a volume may have become since it was decided that its disk is cleaned, and whether that is what it was.
fn changes() -> Vec<(Value, bool)> {
    let with = |pointer: &str, field: &str, value: &str| {
        let mut json = released();
        json.pointer_mut(pointer).expect("a part")[field] = value.into();
        (json, false)
    };
    vec![
        (released(), true),
        // Somebody else has cleaned the disk, and offered it.
        with("/metadata", "uid", "another"),
        // Somebody has written to it, whatever that was: perhaps that it is to be retained.
        with("/metadata", "resourceVersion", "8"),
        with("/status", "phase", "Bound"),
        with("/status", "phase", "Available"),
        // Somebody else has cleaned the disk, and deletes the volume.
        with("/metadata", "deletionTimestamp", "2026-01-01T00:00:00Z"),
    ]
}

#[test]
fn a_volume_that_is_not_what_it_was_is_not_cleaned() {
    for (live, is_as_it_was) in changes() {
        let found = unchanged(&volume(&released()), &volume(&live)).map_err(|refusal| refusal.rule.name);
        assert_eq!(found, if is_as_it_was { Ok(()) } else { Err(rules::CHANGED.name) }, "{live}");
    }
}

#[test]
fn a_policy_that_cannot_be_carried_out_is_told() {
    let of_policy = |phase: &str, policy: &str| {
        let mut json = of("v", US, "/mnt/fast/disk");
        json["spec"]["persistentVolumeReclaimPolicy"] = policy.into();
        json["status"] = json!({"phase": phase});
        let notice = policy_flaw(&volume(&json));
        assert!(notice.iter().all(|notice| notice.message.ends_with(rules::POLICY.why)), "{notice:?}");
        notice.map(|notice| notice.reason)
    };
    assert_eq!(of_policy("Released", "Recycle"), Some(Reason::VolumeUnsupportedReclaimPolicy));
    assert_eq!(of_policy("Released", "Burn"), Some(Reason::VolumeUnknownReclaimPolicy));
    for (phase, policy) in [("Released", "Delete"), ("Released", "Retain"), ("Bound", "Recycle")] {
        assert_eq!(of_policy(phase, policy), None, "{phase} {policy}");
    }
}
