//! Which disk is cleaned for a volume, and when nothing is.

use std::collections::BTreeSet;

use bindery_local_disks::Cleaner;
use bindery_local_disks::clean::{Target, check_unchanged, target, unsupported_policy_event};
use bindery_local_disks::config::{CLEANER_TIMEOUT_DEFAULT, DEFAULT_CLEANER};
use bindery_local_disks::discover::RootDirectory;
use bindery_local_disks::rules::cleaning as rules;
use bindery_model::event::Reason;
use bindery_rules_api::Rule;
use serde_json::{Value, json};

use crate::world::{US, World, of, volume, world};

fn disk() -> Target {
    let cleaner = Cleaner::Command(vec![DEFAULT_CLEANER.into()]);
    let timeout = CLEANER_TIMEOUT_DEFAULT;
    Target { mount_dir: "/seen".into(), entry: "disk".into(), cleaner, timeout, root: None }
}

fn cases() -> Vec<(World, Value, Result<Target, &'static Rule>)> {
    let ours = || of("v", US, "/mnt/fast/disk");
    let at = |path: &str| of("v", US, path);
    let mut other_class = ours();
    other_class["spec"]["storageClassName"] = "slow".into();
    let mut host_path = ours();
    host_path["spec"]["local"] = Value::Null;
    host_path["spec"]["hostPath"] = json!({"path": "/mnt/fast/disk"});
    let recorded = |root: &str| {
        let mut volume = ours();
        volume["metadata"]["annotations"]["bindery.dev/root-directory"] = root.into();
        volume
    };
    let root = Some(RootDirectory { owner: 1000, group: 2000, mode: 0o2770 });
    let outside = || Err(&rules::PATH_OUTSIDE_DIRECTORY);
    vec![
        (world(), ours(), Ok(disk())),
        (world().volume(ours()), ours(), Ok(disk())),
        (world(), at("/mnt/fast//disk/"), Ok(disk())),
        (world(), recorded("1000:2000:2770"), Ok(Target { root, ..disk() })),
        (world(), recorded("root"), Ok(disk())),
        (world(), host_path, Err(&rules::NOT_LOCAL)),
        (world(), other_class, Err(&rules::CLASS_NOT_CONFIGURED)),
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
        (world().volume(ours()).volume(of("w", "a person", "/mnt/fast/disk/")), ours(), Err(&rules::PATH_SHARED)),
    ]
}

#[test]
fn only_entries_of_the_class_directory_are_cleaned() {
    for (world, json, expected) in cases() {
        let decisions = target(&world.config(), &world.existing(), &volume(&json));
        assert_eq!(decisions.as_ref().map_err(|error| error.rule), expected.as_ref().map_err(|rule| *rule), "{json}");
    }
}

#[test]
fn every_rule_is_exercised() {
    let of_disks =
        cases().into_iter().map(|(_, _, decisions)| decisions.map_or_else(|rule| rule.name, |_| rules::CLEAN.name));
    let of_changed =
        changes().into_iter().filter_map(|(_, is_unchanged)| (!is_unchanged).then_some(rules::VOLUME_CHANGED.name));
    // The policy's rule is asserted in its own test.
    let seen: BTreeSet<&str> = of_disks.chain(of_changed).chain([rules::UNSUPPORTED_RECLAIM_POLICY.name]).collect();
    assert_eq!(seen, rules::ALL.iter().map(|rule| rule.name).collect());
}

/// A released volume.
fn released() -> Value {
    let mut json = of("v", US, "/mnt/fast/disk");
    json["metadata"]["resourceVersion"] = "7".into();
    json["status"] = json!({"phase": "Released"});
    json
}

/// A live volume after the decision to clean it, and whether it counts as unchanged.
fn changes() -> Vec<(Value, bool)> {
    let with = |pointer: &str, field: &str, value: &str| {
        let mut json = released();
        json.pointer_mut(pointer).expect("a part")[field] = value.into();
        (json, false)
    };
    vec![
        (released(), true),
        // Another process has cleaned the disk and created a new volume.
        with("/metadata", "uid", "another"),
        // Any other write, for example of the reclaim policy.
        with("/metadata", "resourceVersion", "8"),
        with("/status", "phase", "Bound"),
        with("/status", "phase", "Available"),
        // Another process has cleaned the disk and deletes the volume.
        with("/metadata", "deletionTimestamp", "2026-01-01T00:00:00Z"),
    ]
}

#[test]
fn changed_volume_is_not_cleaned() {
    for (live, is_unchanged) in changes() {
        let decisions = check_unchanged(&volume(&released()), &volume(&live)).map_err(|error| error.rule.name);
        assert_eq!(decisions, if is_unchanged { Ok(()) } else { Err(rules::VOLUME_CHANGED.name) }, "{live}");
    }
}

#[test]
fn unsupported_reclaim_policy_is_reported() {
    let of_policy = |phase: &str, policy: &str| {
        let mut json = of("v", US, "/mnt/fast/disk");
        json["spec"]["persistentVolumeReclaimPolicy"] = policy.into();
        json["status"] = json!({"phase": phase});
        let event = unsupported_policy_event(&volume(&json));
        assert!(event.iter().all(|event| event.message.ends_with(rules::UNSUPPORTED_RECLAIM_POLICY.why)), "{event:?}");
        event.map(|event| event.reason)
    };
    assert_eq!(of_policy("Released", "Recycle"), Some(Reason::VolumeUnsupportedReclaimPolicy));
    assert_eq!(of_policy("Released", "Burn"), Some(Reason::VolumeUnknownReclaimPolicy));
    for (phase, policy) in [("Released", "Delete"), ("Released", "Retain"), ("Bound", "Recycle")] {
        assert_eq!(of_policy(phase, policy), None, "{phase} {policy}");
    }
}
