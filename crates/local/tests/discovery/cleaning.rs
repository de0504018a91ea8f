//! Which disk is behind a volume, and when it is not to be touched.

use std::collections::BTreeSet;

use bindery_local::Cleaner;
use bindery_local::clean::{Target, policy_flaw, target};
use bindery_local::config::DEFAULT_CLEANER;
use bindery_local::rules::cleaning as rules;
use bindery_verdict::Rule;
use bindery_volumes::event::Reason;
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
fn every_refusal_has_its_case() {
    let seen: BTreeSet<&str> =
        cases().into_iter().filter_map(|(_, _, found)| found.err()).map(|rule| rule.name).collect();
    // The policy has a test of its own. The others are of a disk that is held: the tests on real disks show them.
    let late = [rules::POLICY.name, rules::CHANGED.name, rules::CLEAN.name];
    let all: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !late.contains(name)).collect();
    assert_eq!(seen, all);
}

#[test]
fn a_policy_that_cannot_be_carried_out_is_told() {
    let of_policy = |phase: &str, policy: &str| {
        let mut json = of("v", US, "/mnt/fast/disk");
        json["spec"]["persistentVolumeReclaimPolicy"] = policy.into();
        json["status"] = json!({"phase": phase});
        policy_flaw(&volume(&json)).map(|notice| notice.reason)
    };
    assert_eq!(of_policy("Released", "Recycle"), Some(Reason::VolumeUnsupportedReclaimPolicy));
    assert_eq!(of_policy("Released", "Burn"), Some(Reason::VolumeUnknownReclaimPolicy));
    for (phase, policy) in [("Released", "Delete"), ("Released", "Retain"), ("Bound", "Recycle")] {
        assert_eq!(of_policy(phase, policy), None, "{phase} {policy}");
    }
}
