//! The configuration: upstream's files, and errors.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_local_disks::config::{CLEANER_TIMEOUT_DEFAULT, DEFAULT_CLEANER, UnknownFile};
use bindery_local_disks::{Cleaner, Config, Wipe};
use bindery_model::{AccessMode, VolumeMode};
use serde_json::json;

fn read(files: &[(&str, &str)]) -> Result<Config, String> {
    let files: BTreeMap<String, String> = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::parse(&files).map_err(|error| error.to_string())
}

#[test]
fn defaults_match_upstream() {
    let config =
        read(&[("storageClassMap", "fast:\n  hostDir: /mnt/fast/\n  mountDir: /mnt//fast\n")]).expect("a config");
    let class = &config.classes["fast"];
    assert_eq!((class.host_dir.as_str(), class.mount_dir.as_str()), ("/mnt/fast", "/mnt/fast"));
    assert_eq!(class.cleaner, Cleaner::Command(vec![DEFAULT_CLEANER.into()]));
    assert_eq!(class.cleaner_timeout, CLEANER_TIMEOUT_DEFAULT);
    assert_eq!((class.volume_mode, class.access_mode), (VolumeMode::Filesystem, AccessMode::ReadWriteOnce));
    assert_eq!((class.fs_type.as_ref(), class.only_empty, class.selector.len()), (None, false, 0));
    assert!(class.patterns.iter().any(|pattern| pattern.matches("any-name")));
    assert_eq!((config.resync_min, config.taint.as_ref()), (Duration::from_secs(300), None));
    assert!(!config.use_node_name_only && !config.set_owner_reference);
    assert_eq!(read(&[]).expect("an empty configuration").classes.len(), 0);
}

#[test]
fn every_key_is_read() {
    let class = "slow:
  hostDir: /mnt/slow
  mountDir: /seen/slow
  blockCleanerCommand: [\"/scripts/shred.sh\", \"2\"]
  blockCleanerTimeout: 12h
  volumeMode: Block
  accessMode: ReadWriteOncePod
  fsType: xfs
  namePattern: \"sd*,nvme?n1\"
  onlyEmpty: true
  selector:
  - matchExpressions: [{key: zone, operator: In, values: [a]}]
";
    let config = read(&[
        ("storageClassMap", class),
        ("nodeLabelsForPV", "- kubernetes.io/hostname\n- zone\n"),
        ("labelsForPV", "team: disks\nnumber: 1\n"),
        ("minResyncPeriod", "1m30s"),
        ("useNodeNameOnly", "true"),
        ("setPVOwnerRef", "\"true\""),
        ("removeNodeNotReadyTaint", "true\n"),
        ("provisionerNotReadyNodeTaintKey", "sig-storage-local-static-provisioner/agent-not-ready"),
        ("useJobForCleaning", "false"),
        ("useAlphaAPI", ""),
        ("jobTolerations", "[]"),
        ("unrelated-file", "ignored"),
    ]);
    let config = config.expect("a config");
    let slow = &config.classes["slow"];
    assert_eq!(slow.cleaner, Cleaner::Command(vec!["/scripts/shred.sh".into(), "2".into()]));
    assert_eq!(slow.cleaner_timeout, Duration::from_secs(12 * 3600));
    assert_eq!((slow.volume_mode, slow.access_mode), (VolumeMode::Block, AccessMode::ReadWriteOncePod));
    assert_eq!((slow.fs_type.as_deref(), slow.only_empty), (Some("xfs"), true));
    let named: Vec<bool> =
        ["sda", "nvme0n1", "nvme0n1p1"].iter().map(|name| slow.patterns.iter().any(|p| p.matches(name))).collect();
    assert_eq!(named, [true, true, false]);
    assert_eq!(slow.selector, [json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]})]);
    assert_eq!(config.node_labels, ["kubernetes.io/hostname", "zone"]);
    assert_eq!(
        config.labels.iter().collect::<Vec<_>>(),
        [(&"number".into(), &"1".into()), (&"team".into(), &"disks".into())]
    );
    assert_eq!(config.resync_min, Duration::from_secs(90));
    assert!(config.use_node_name_only && config.set_owner_reference);
    assert_eq!(config.taint.as_deref(), Some("sig-storage-local-static-provisioner/agent-not-ready"));
}

#[test]
fn builtin_cleaners_are_selected_by_name() {
    for (word, wipe) in
        [("quick", Wipe::Quick), ("zero", Wipe::Zero), ("discard", Wipe::Discard), ("shred", Wipe::Shred(3))]
    {
        let class = format!("c: {{hostDir: /a, mountDir: /a, blockCleanerCommand: [\"builtin:{word}\"]}}");
        let config = read(&[("storageClassMap", &class)]).expect("a config");
        assert_eq!(config.classes["c"].cleaner, Cleaner::Builtin(wipe));
    }
}

#[test]
fn labels_are_validated_as_in_kubernetes() {
    let config = read(&[("labelsForPV", "{example.com/team_1: disks, zone: ''}")]).expect("a config");
    assert_eq!(config.labels["example.com/team_1"], "disks");
    assert_eq!(config.labels["zone"], "");
}

#[test]
fn unknown_files_are_reported() {
    let config = read(&[("storageclassmap", "{}"), ("namespace", "kube-system")]).expect("a config");
    let meant = Some("storageClassMap".to_owned());
    let unknown = UnknownFile { name: "storageclassmap".into(), meant };
    assert_eq!(config.unknown, [unknown], "upstream's keys are ignored silently");
    let config = read(&[("README", "")]).expect("a config");
    assert_eq!(config.unknown, [UnknownFile { name: "README".into(), meant: None }]);
}

#[test]
fn misspelt_keys_are_named_with_the_key_that_was_meant() {
    for (misspelt, meant) in [
        ("hostdir", "hostDir"),
        ("host_dir", "hostDir"),
        ("mountdir", "mountDir"),
        ("mountDirectory", ""),
        ("blockCleanerComand", "blockCleanerCommand"),
        ("blockcleanertimeout", "blockCleanerTimeout"),
        ("volumeModes", "volumeMode"),
        ("fstyp", "fsType"),
        ("banana", ""),
    ] {
        // It is the reason why a required key is missing, so it is reported first.
        let error = read(&[("storageClassMap", &format!("c: {{{misspelt}: /a}}"))]).expect_err("unknown");
        let start = format!("storageClassMap: class \"c\": {misspelt}: unknown key; ");
        let suggestion = if meant.is_empty() { "known keys: ".into() } else { format!("did you mean {meant}? ") };
        assert!(error.starts_with(&(start + &suggestion)), "{error}");
        assert!(error.contains("hostDir, mountDir, blockCleanerCommand"), "{error}");
    }
}

#[test]
fn scripts_of_upstream_are_replaced_if_they_do_not_exist() {
    let cleaner = |command: &str, exists: bool| {
        let class = format!("c: {{hostDir: /a, mountDir: /a, blockCleanerCommand: {command}}}");
        let config = Config::parse(&BTreeMap::from([("storageClassMap".to_owned(), class)])).expect("a config");
        let config = config.with_existing_cleaners(|_| exists).map_err(|error| error.to_string());
        config.map(|config| config.classes["c"].cleaner.clone())
    };
    for (command, wipe) in [
        ("[/scripts/quick_reset.sh]", Wipe::Quick),
        ("[/scripts/dd_zero.sh, '2']", Wipe::Zero),
        ("[/scripts/blkdiscard.sh]", Wipe::Discard),
        ("[/scripts/shred.sh]", Wipe::Shred(3)),
        ("[/scripts/shred.sh, '2']", Wipe::Shred(2)),
    ] {
        assert_eq!(cleaner(command, false), Ok(Cleaner::Builtin(wipe)), "{command}");
        assert!(matches!(cleaner(command, true), Ok(Cleaner::Command(_))), "{command} exists");
    }
    assert_eq!(cleaner("['builtin:zero']", false), Ok(Cleaner::Builtin(Wipe::Zero)));
    for (command, problem) in [
        ("[/scripts/fsclean.sh]", "cleans file systems, for which no command is needed: remove this key"),
        ("[/scripts/own.sh]", "does not exist or is not executable here: add it to the image or mount it, or use one"),
        ("[/scripts/shred.sh, many]", "takes the number of passes, 1 to 100"),
        ("[/scripts/shred.sh, '0']", "takes the number of passes, 1 to 100"),
    ] {
        let error = cleaner(command, false).expect_err("rejected");
        assert!(error.starts_with("storageClassMap: class \"c\": blockCleanerCommand: /scripts/"), "{error}");
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn errors_say_where_they_are() {
    let class = |fields: &str| read(&[("storageClassMap", &format!("c: {{hostDir: /a, mountDir: /a, {fields}}}"))]);
    let cases = [
        (
            read(&[("storageClassMap", "c: {mountDir: /a}")]),
            "storageClassMap: class \"c\": hostDir: this key is required",
        ),
        (
            read(&[("storageClassMap", "c: {hostDir: /a}")]),
            "storageClassMap: class \"c\": mountDir: this key is required",
        ),
        (read(&[("storageClassMap", "c: {hostDir: a, mountDir: /a}")]), "\"a\" is not an absolute path"),
        (read(&[("storageClassMap", "c: {hostDir: /a/../b, mountDir: /a}")]), "\"/a/../b\" is not an absolute path"),
        (read(&[("storageClassMap", "c: {hostDir: /, mountDir: /a}")]), "\"/\" is not an absolute path"),
        (read(&[("storageClassMap", "c: 1")]), "storageClassMap: class \"c\": expected a map"),
        (read(&[("storageClassMap", "[c]")]), "storageClassMap: expected a map of classes, found [\"c\"]"),
        (read(&[("storageClassMap", "c: [")]), "storageClassMap: invalid YAML: "),
        (class("volumeMode: block"), "class \"c\": volumeMode: expected Filesystem or Block, found \"block\""),
        (class("accessMode: RWO"), "class \"c\": accessMode: expected one of Kubernetes' access modes"),
        (class("blockCleanerCommand: []"), "class \"c\": blockCleanerCommand: must not be empty"),
        (class("blockCleanerCommand: [\"builtin:burn\"]"), "is not a built-in cleaner (known, without arguments: "),
        (class("blockCleanerCommand: [\"builtin:zero\", \"2\"]"), "is not a built-in cleaner"),
        (class("blockCleanerCommand: wipe"), "expected a list of strings, found \"wipe\""),
        (class("namePattern: \"a,[\""), "class \"c\": namePattern: \"[\" contains an invalid bracket"),
        (class("selector: {}"), "class \"c\": selector: expected a list of objects, found {}"),
        (
            class("volumemode: Block"),
            "class \"c\": volumemode: unknown key; did you mean volumeMode? Known keys: hostDir, ",
        ),
        (class("blockCleanerTimeout: 0s"), "class \"c\": blockCleanerTimeout: must not be 0"),
        (class("blockCleanerTimeout: long"), "class \"c\": blockCleanerTimeout: expected a duration such as 5m0s"),
        (class("onlyEmpty: perhaps"), "class \"c\": onlyEmpty: expected true or false, found \"perhaps\""),
        (
            read(&[("storageClassMap", "a: {hostDir: /x, mountDir: /d}\nb: {hostDir: /y, mountDir: /d/}")]),
            "storageClassMap: class \"b\": mountDir: class \"a\" has the same directory",
        ),
        (
            read(&[("storageClassMap", "a: {hostDir: /x, mountDir: /d}\nb: {hostDir: /x/, mountDir: /e}")]),
            "storageClassMap: class \"b\": hostDir: class \"a\" has the same directory",
        ),
        (read(&[("nodeLabelsForPV", "zone")]), "nodeLabelsForPV: expected a list of strings, found \"zone\""),
        (read(&[("labelsForPV", "[a]")]), "labelsForPV: expected a map of strings"),
        (read(&[("labelsForPV", "{\"a key\": b}")]), "labelsForPV: \"a key\": \"b\" is not a valid Kubernetes label"),
        (read(&[("labelsForPV", "{Up.example/a: b}")]), "labelsForPV: \"Up.example/a\": \"b\" is not a valid"),
        (read(&[("labelsForPV", "{a: -b}")]), "labelsForPV: \"a\": \"-b\" is not a valid Kubernetes label"),
        (read(&[("minResyncPeriod", "soon")]), "minResyncPeriod: expected a duration such as 5m0s"),
        (read(&[("useAlphaAPI", "true")]), "useAlphaAPI: the alpha node affinity annotation"),
        (read(&[("useJobForCleaning", "true")]), "useJobForCleaning: Jobs are not supported: cleaning always runs"),
        (
            read(&[("removeNodeNotReadyTaint", "true")]),
            "provisionerNotReadyNodeTaintKey: removeNodeNotReadyTaint requires",
        ),
    ];
    for (outcome, expected) in cases {
        let error = outcome.expect_err(expected);
        assert!(error.contains(expected), "{error:?} says {expected:?}");
    }
}
