//! Which entries get a volume, and why others do not.

use std::collections::BTreeSet;

use bindery_local_disks::discover::{Entry, Identity, Outcome, Shape};
use bindery_local_disks::naming::volume_name;
use bindery_local_disks::rules::discovery as rules;
use bindery_model::event::{EventType, Reason};
use bindery_rules_api::Rule;
use serde_json::json;

use crate::world::{US, World, device, mounted, of, world};

/// The expected outcome.
#[derive(Debug, PartialEq)]
enum Expect {
    Create,
    Skip,
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
    let malformed = json!({"metadata": {"name": "fast", "uid": "c"}, "volumeBindingMode": "Someday"});
    let mut unlabelled = world().entry(mounted("disk"));
    unlabelled.node = json!({"metadata": {"name": "n", "uid": "u"}});
    let mut elsewhere = of("other", "another", "/mnt/fast/disk");
    elsewhere["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] =
        json!(["m"]);
    let mut cleaning = world().entry(mounted("disk"));
    cleaning.cleaning.insert(disk.clone());
    let empty = |is_empty| world().with("onlyEmpty: true").entry(Entry { is_empty, ..mounted("disk") });
    let by_name = || world().file("useNodeNameOnly", "true").entry(mounted("disk"));
    let mut predecessors = ours();
    predecessors["metadata"]["labels"] = json!({"kubernetes.io/hostname": "n"});
    let numbered = |name: &str| Entry { identity: Some(Identity::Device(7)), ..device(name) };
    let two_names =
        |entry: &str, class: &str| world().entry(numbered("disk")).disk("fast", "disk", 7).disk(class, entry, 7);
    vec![
        (world().class(None).entry(mounted("disk")), &rules::CLASS_MISSING, Expect::Fail),
        (world().class(Some(malformed)).entry(mounted("disk")), &rules::CLASS_MALFORMED, Expect::Fail),
        (with_policy("Recycle"), &rules::CLASS_RECLAIM_POLICY, Expect::Fail),
        (with_policy("Burn"), &rules::CLASS_RECLAIM_POLICY, Expect::Fail),
        (with_policy("Retain"), &rules::CREATE_VOLUME, Expect::Create),
        (unlabelled, &rules::NODE_WITHOUT_HOSTNAME_LABEL, Expect::Fail),
        (world().with("namePattern: \"d?\"").entry(mounted("disk")), &rules::NAME_NOT_MATCHED, Expect::Skip),
        (world().with("namePattern: \"d?\"").unreadable("disk", "gone"), &rules::NAME_NOT_MATCHED, Expect::Skip),
        (world().unreadable("disk", "gone"), &rules::UNREADABLE, Expect::Fail),
        (world().entry(Entry { shape: Shape::Other, ..mounted("disk") }), &rules::UNSUPPORTED_TYPE, Expect::Fail),
        (world().entry(mounted("disk")).volume(ours()), &rules::VOLUME_EXISTS, Expect::Skip),
        (world().entry(device("disk")).volume(block.clone()), &rules::VOLUME_EXISTS, Expect::Skip),
        (world().entry(mounted("disk")).volume(block), &rules::DEVICE_BECAME_DIRECTORY, Expect::Fail),
        (world().entry(mounted("disk")).volume(of(&disk, "u2", "/x")), &rules::NAME_TAKEN, Expect::Fail),
        (by_name().volume(predecessors.clone()), &rules::VOLUME_EXISTS, Expect::Skip),
        (by_name().volume(ours()), &rules::NAME_TAKEN, Expect::Fail),
        (world().entry(mounted("disk")).volume(of("x", US, "/mnt/fast/disk")), &rules::PATH_TAKEN, Expect::Skip),
        (
            world().entry(mounted("disk")).volume(of("x", "a person", "/mnt/fast//disk/")),
            &rules::PATH_TAKEN,
            Expect::Skip,
        ),
        (world().entry(mounted("disk")).volume(elsewhere), &rules::CREATE_VOLUME, Expect::Create),
        (world().entry(mounted("disk")).volume(of("x", US, "/mnt/fast/disk2")), &rules::CREATE_VOLUME, Expect::Create),
        (two_names("a-link", "fast"), &rules::SAME_DISK, Expect::Fail),
        (two_names("disk", "bulk"), &rules::SAME_DISK, Expect::Fail),
        (two_names("other-link", "fast"), &rules::CREATE_VOLUME, Expect::Create),
        (
            two_names("other-link", "fast").volume(of(&volume_name("other-link", "n", "fast"), US, "/x")),
            &rules::SAME_DISK,
            Expect::Fail,
        ),
        (
            world().entry(numbered("disk")).disk("fast", "disk", 7).disk("fast", "a-link", 8),
            &rules::CREATE_VOLUME,
            Expect::Create,
        ),
        (cleaning, &rules::CLEANING, Expect::Skip),
        (world().with("volumeMode: Block").entry(mounted("disk")), &rules::DIRECTORY_FOR_BLOCK, Expect::Fail),
        (world().entry(Entry { is_mount_point: false, ..mounted("disk") }), &rules::NOT_MOUNTED, Expect::Fail),
        (empty(Some(false)), &rules::NOT_EMPTY, Expect::Skip),
        (empty(None), &rules::NOT_EMPTY, Expect::Skip),
        (empty(Some(true)), &rules::CREATE_VOLUME, Expect::Create),
        (world().entry(mounted("disk")), &rules::CREATE_VOLUME, Expect::Create),
        (world().entry(device("disk")), &rules::CREATE_VOLUME, Expect::Create),
        (world().with("volumeMode: Block").entry(device("disk")), &rules::CREATE_VOLUME, Expect::Create),
    ]
}

#[test]
fn every_entry_gets_the_expected_rule() {
    for (index, (world, rule, expected)) in cases().into_iter().enumerate() {
        let decisions = world.decide();
        assert_eq!(decisions.len(), 1, "case {index}");
        let outcome = match &decisions[0].outcome {
            Outcome::Create(_) => Expect::Create,
            Outcome::Skip => Expect::Skip,
            Outcome::Fail => Expect::Fail,
        };
        assert_eq!((decisions[0].rule.name, outcome), (rule.name, expected), "case {index}: {}", decisions[0].note);
        let says_why = matches!(decisions[0].outcome, Outcome::Fail) <= !decisions[0].note.is_empty();
        assert!(says_why, "case {index}: a failure has a note");
    }
}

#[test]
fn every_rule_is_exercised() {
    let seen: BTreeSet<&str> = cases().into_iter().map(|(_, rule, _)| rule.name).collect();
    let all: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    assert_eq!(seen, all);
}

#[test]
fn bad_entry_does_not_affect_others() {
    let decisions =
        world().unreadable("bad", "gone").entry(mounted("good")).entry(Entry { shape: Shape::Other, ..mounted("odd") });
    let rules: Vec<&str> = decisions.decide().iter().map(|decision| decision.rule.name).collect();
    assert_eq!(rules, [rules::UNREADABLE.name, rules::CREATE_VOLUME.name, rules::UNSUPPORTED_TYPE.name]);
}

#[test]
fn device_that_became_a_directory_is_reported_on_its_volume() {
    let disk = volume_name("disk", "n", "fast");
    let mut block = of(&disk, US, "/mnt/fast/disk");
    block["spec"]["volumeMode"] = "Block".into();
    let decisions = world().entry(mounted("disk")).volume(block).decide();
    let event = decisions[0].event.as_ref().expect("an event");
    assert_eq!((event.event_type, event.reason), (EventType::Warning, Reason::VolumeFailedDelete));
    assert_eq!(event.about.name, disk);
    assert!(event.message.contains("/mnt/fast/disk is a directory"), "{}", event.message);
}
