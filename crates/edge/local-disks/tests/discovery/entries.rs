//! Which entries are offered, and why the others are not.

use std::collections::BTreeSet;

use bindery_local_disks::discover::{Identity, Outcome, Seen, Shape};
use bindery_local_disks::naming::volume_name;
use bindery_local_disks::rules::discovery as rules;
use bindery_model::event::{EventType, Reason};
use bindery_rules_api::Rule;
use serde_json::json;

use crate::world::{US, World, device, mounted, of, world};

/// What is expected of the one finding.
#[derive(Debug, PartialEq)]
enum Expect {
    Offer,
    Leave,
    Fail,
}

fn cases() -> Vec<(World, &'static Rule, Expect)> {
    let disk = volume_name("disk", "n", "fast");
    let with_policy = |policy: &str| {
        let class = json!({"metadata": {"name": "fast", "uid": "c"}, "reclaimPolicy": policy});
        world().class(Some(class)).entry(mounted("disk"))
    };
    let ours = || of(&disk, US, "/mnt/fast/disk");
    let mut block = ours();
    block["spec"]["volumeMode"] = "Block".into();
    let flawed = json!({"metadata": {"name": "fast", "uid": "c"}, "volumeBindingMode": "Someday"});
    let mut unlabelled = world().entry(mounted("disk"));
    unlabelled.node = json!({"metadata": {"name": "n", "uid": "u"}});
    let mut elsewhere = of("other", "somebody", "/mnt/fast/disk");
    elsewhere["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] =
        json!(["m"]);
    let mut cleaning = world().entry(mounted("disk"));
    cleaning.cleaning.insert(disk.clone());
    let empty = |is_empty| world().with("onlyEmpty: true").entry(Seen { is_empty, ..mounted("disk") });
    let by_name = || world().file("useNodeNameOnly", "true").entry(mounted("disk"));
    let mut predecessor_s = ours();
    predecessor_s["metadata"]["labels"] = json!({"kubernetes.io/hostname": "n"});
    let numbered = |name: &str| Seen { identity: Some(Identity::Device(7)), ..device(name) };
    let twins =
        |entry: &str, class: &str| world().entry(numbered("disk")).disk("fast", "disk", 7).disk(class, entry, 7);
    vec![
        (world().class(None).entry(mounted("disk")), &rules::CLASS_MISSING, Expect::Fail),
        (world().class(Some(flawed)).entry(mounted("disk")), &rules::CLASS_MALFORMED, Expect::Fail),
        (with_policy("Recycle"), &rules::CLASS_POLICY, Expect::Fail),
        (with_policy("Burn"), &rules::CLASS_POLICY, Expect::Fail),
        (with_policy("Retain"), &rules::OFFER, Expect::Offer),
        (unlabelled, &rules::NODE_UNLABELLED, Expect::Fail),
        (world().with("namePattern: \"d?\"").entry(mounted("disk")), &rules::NOT_MEANT, Expect::Leave),
        (world().with("namePattern: \"d?\"").unseen("disk", "gone"), &rules::NOT_MEANT, Expect::Leave),
        (world().unseen("disk", "gone"), &rules::UNREADABLE, Expect::Fail),
        (world().entry(Seen { shape: Shape::Other, ..mounted("disk") }), &rules::STRANGE, Expect::Fail),
        (world().entry(mounted("disk")).volume(ours()), &rules::OFFERED, Expect::Leave),
        (world().entry(device("disk")).volume(block.clone()), &rules::OFFERED, Expect::Leave),
        (world().entry(mounted("disk")).volume(block), &rules::MODE_CHANGED, Expect::Fail),
        (world().entry(mounted("disk")).volume(of(&disk, "u2", "/x")), &rules::NAME_TAKEN, Expect::Fail),
        (by_name().volume(predecessor_s.clone()), &rules::OFFERED, Expect::Leave),
        (by_name().volume(ours()), &rules::NAME_TAKEN, Expect::Fail),
        (world().entry(mounted("disk")).volume(of("x", US, "/mnt/fast/disk")), &rules::PATH_TAKEN, Expect::Leave),
        (
            world().entry(mounted("disk")).volume(of("x", "a person", "/mnt/fast//disk/")),
            &rules::PATH_TAKEN,
            Expect::Leave,
        ),
        (world().entry(mounted("disk")).volume(elsewhere), &rules::OFFER, Expect::Offer),
        (world().entry(mounted("disk")).volume(of("x", US, "/mnt/fast/disk2")), &rules::OFFER, Expect::Offer),
        (twins("a-link", "fast"), &rules::SAME_DISK, Expect::Fail),
        (twins("disk", "bulk"), &rules::SAME_DISK, Expect::Fail),
        (twins("other-link", "fast"), &rules::OFFER, Expect::Offer),
        (
            twins("other-link", "fast").volume(of(&volume_name("other-link", "n", "fast"), US, "/x")),
            &rules::SAME_DISK,
            Expect::Fail,
        ),
        (
            world().entry(numbered("disk")).disk("fast", "disk", 7).disk("fast", "a-link", 8),
            &rules::OFFER,
            Expect::Offer,
        ),
        (cleaning, &rules::CLEANING, Expect::Leave),
        (world().with("volumeMode: Block").entry(mounted("disk")), &rules::DIRECTORY_FOR_BLOCK, Expect::Fail),
        (world().entry(Seen { is_mount_point: false, ..mounted("disk") }), &rules::NOT_MOUNTED, Expect::Fail),
        (empty(Some(false)), &rules::NOT_EMPTY, Expect::Leave),
        (empty(None), &rules::NOT_EMPTY, Expect::Leave),
        (empty(Some(true)), &rules::OFFER, Expect::Offer),
        (world().entry(mounted("disk")), &rules::OFFER, Expect::Offer),
        (world().entry(device("disk")), &rules::OFFER, Expect::Offer),
        (world().with("volumeMode: Block").entry(device("disk")), &rules::OFFER, Expect::Offer),
    ]
}

#[test]
fn every_entry_has_its_rule() {
    for (place, (world, rule, expected)) in cases().into_iter().enumerate() {
        let found = world.found();
        assert_eq!(found.len(), 1, "case {place}");
        let outcome = match &found[0].outcome {
            Outcome::Offer(_) => Expect::Offer,
            Outcome::Leave => Expect::Leave,
            Outcome::Fail => Expect::Fail,
        };
        assert_eq!((found[0].rule.name, outcome), (rule.name, expected), "case {place}: {}", found[0].note);
        let says_why = matches!(found[0].outcome, Outcome::Fail) <= !found[0].note.is_empty();
        assert!(says_why, "case {place}: who fails says why");
    }
}

#[test]
fn every_rule_is_exercised() {
    let seen: BTreeSet<&str> = cases().into_iter().map(|(_, rule, _)| rule.name).collect();
    let all: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    assert_eq!(seen, all);
}

#[test]
fn one_bad_entry_does_not_keep_the_others_back() {
    let found =
        world().unseen("bad", "gone").entry(mounted("good")).entry(Seen { shape: Shape::Other, ..mounted("odd") });
    let rules: Vec<&str> = found.found().iter().map(|finding| finding.rule.name).collect();
    assert_eq!(rules, [rules::UNREADABLE.name, rules::OFFER.name, rules::STRANGE.name]);
}

#[test]
fn a_device_that_became_a_directory_is_told_of_on_its_volume() {
    let disk = volume_name("disk", "n", "fast");
    let mut block = of(&disk, US, "/mnt/fast/disk");
    block["spec"]["volumeMode"] = "Block".into();
    let found = world().entry(mounted("disk")).volume(block).found();
    let notice = found[0].notice.as_ref().expect("a notice");
    assert_eq!((notice.event_type, notice.reason), (EventType::Warning, Reason::VolumeFailedDelete));
    assert_eq!(notice.about.name, disk);
    assert!(notice.message.contains("/mnt/fast/disk is a directory"), "{}", notice.message);
}
