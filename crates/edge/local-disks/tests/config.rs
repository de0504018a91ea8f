//! The configuration: what upstream's files mean, and what is said of those that mean nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_local_disks::config::DEFAULT_CLEANER;
use bindery_local_disks::{Cleaner, Config, Wipe};
use bindery_model::{AccessMode, VolumeMode};
use serde_json::json;

fn read(files: &[(&str, &str)]) -> Result<Config, String> {
    let files: BTreeMap<String, String> = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::parse(&files).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_upstream_s() {
    let config =
        read(&[("storageClassMap", "fast:\n  hostDir: /mnt/fast/\n  mountDir: /mnt//fast\n")]).expect("a config");
    let class = &config.classes["fast"];
    assert_eq!((class.host_dir.as_str(), class.mount_dir.as_str()), ("/mnt/fast", "/mnt/fast"));
    assert_eq!(class.cleaner, Cleaner::Command(vec![DEFAULT_CLEANER.into()]));
    assert_eq!((class.volume_mode, class.access_mode), (VolumeMode::Filesystem, AccessMode::ReadWriteOnce));
    assert_eq!((class.fs_type.as_ref(), class.is_only_empty, class.selector.len()), (None, false, 0));
    assert!(class.patterns.iter().any(|pattern| pattern.matches("whatever")));
    assert_eq!((config.resync_min, config.taint.as_ref()), (Duration::from_secs(300), None));
    assert!(!config.is_named_by_node_only && !config.is_owned_by_node);
    assert_eq!(read(&[]).expect("nothing is configured").classes.len(), 0);
}

#[test]
fn everything_can_be_said() {
    let class = "slow:
  hostDir: /mnt/slow
  mountDir: /seen/slow
  blockCleanerCommand: [\"/scripts/shred.sh\", \"2\"]
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
        ("a-file-of-somebody-s", "nothing to us"),
    ]);
    let config = config.expect("a config");
    let slow = &config.classes["slow"];
    assert_eq!(slow.cleaner, Cleaner::Command(vec!["/scripts/shred.sh".into(), "2".into()]));
    assert_eq!((slow.volume_mode, slow.access_mode), (VolumeMode::Block, AccessMode::ReadWriteOncePod));
    assert_eq!((slow.fs_type.as_deref(), slow.is_only_empty), (Some("xfs"), true));
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
    assert!(config.is_named_by_node_only && config.is_owned_by_node);
    assert_eq!(config.taint.as_deref(), Some("sig-storage-local-static-provisioner/agent-not-ready"));
}

#[test]
fn cleaners_of_our_own_are_named_by_a_word() {
    for (word, wipe) in [("quick", Wipe::Quick), ("zero", Wipe::Zero), ("discard", Wipe::Discard)] {
        let class = format!("c: {{hostDir: /a, mountDir: /a, blockCleanerCommand: [\"builtin:{word}\"]}}");
        let config = read(&[("storageClassMap", &class)]).expect("a config");
        assert_eq!(config.classes["c"].cleaner, Cleaner::Builtin(wipe));
    }
}

#[test]
fn labels_are_those_of_kubernetes() {
    let config = read(&[("labelsForPV", "{example.com/team_1: disks, zone: ''}")]).expect("a config");
    assert_eq!(config.labels["example.com/team_1"], "disks");
    assert_eq!(config.labels["zone"], "");
}

#[test]
fn files_that_mean_nothing_are_known() {
    let config = read(&[("storageclassmap", "{}"), ("namespace", "kube-system")]).expect("a config");
    assert_eq!(config.unknown, ["storageclassmap"], "what upstream knows is passed over");
}

#[test]
fn an_error_says_where_it_stands() {
    let class = |fields: &str| read(&[("storageClassMap", &format!("c: {{hostDir: /a, mountDir: /a, {fields}}}"))]);
    let cases = [
        (read(&[("storageClassMap", "c: {mountDir: /a}")]), "storageClassMap: class \"c\": hostDir: it is required"),
        (read(&[("storageClassMap", "c: {hostDir: /a}")]), "storageClassMap: class \"c\": mountDir: it is required"),
        (read(&[("storageClassMap", "c: {hostDir: a, mountDir: /a}")]), "\"a\" is not the absolute path"),
        (read(&[("storageClassMap", "c: {hostDir: /a/../b, mountDir: /a}")]), "\"/a/../b\" is not the absolute path"),
        (read(&[("storageClassMap", "c: {hostDir: /, mountDir: /a}")]), "\"/\" is not the absolute path"),
        (read(&[("storageClassMap", "c: 1")]), "storageClassMap: class \"c\": it has to be a map of keys"),
        (read(&[("storageClassMap", "[c]")]), "storageClassMap: it has to be a map of classes, and is [\"c\"]"),
        (read(&[("storageClassMap", "c: [")]), "storageClassMap: it is not YAML: "),
        (class("volumeMode: block"), "class \"c\": volumeMode: it has to be Filesystem or Block, and is \"block\""),
        (class("accessMode: RWO"), "class \"c\": accessMode: it has to be one of Kubernetes' access modes"),
        (class("blockCleanerCommand: []"), "class \"c\": blockCleanerCommand: it is there, and empty"),
        (class("blockCleanerCommand: [\"builtin:burn\"]"), "is no built-in cleaner (there are, without arguments: "),
        (class("blockCleanerCommand: [\"builtin:zero\", \"2\"]"), "is no built-in cleaner"),
        (class("blockCleanerCommand: wipe"), "it has to be a list of texts, and is \"wipe\""),
        (class("namePattern: \"a,[\""), "class \"c\": namePattern: \"[\" has a bracket"),
        (class("selector: {}"), "class \"c\": selector: it has to be a list of objects, and is {}"),
        (class("volumemode: Block"), "class \"c\": volumemode: there is no such key (there are: hostDir, "),
        (class("onlyEmpty: perhaps"), "class \"c\": onlyEmpty: it has to be true or false, and is \"perhaps\""),
        (
            read(&[("storageClassMap", "a: {hostDir: /x, mountDir: /d}\nb: {hostDir: /y, mountDir: /d/}")]),
            "storageClassMap: class \"b\": mountDir: class \"a\" has the same directory",
        ),
        (
            read(&[("storageClassMap", "a: {hostDir: /x, mountDir: /d}\nb: {hostDir: /x/, mountDir: /e}")]),
            "storageClassMap: class \"b\": hostDir: class \"a\" has the same directory",
        ),
        (read(&[("nodeLabelsForPV", "zone")]), "nodeLabelsForPV: it has to be a list of texts, and is \"zone\""),
        (read(&[("labelsForPV", "[a]")]), "labelsForPV: it has to be a map of texts"),
        (read(&[("labelsForPV", "{\"a key\": b}")]), "labelsForPV: \"a key\" with the value \"b\" cannot be a label"),
        (read(&[("labelsForPV", "{Up.example/a: b}")]), "labelsForPV: \"Up.example/a\" with the value \"b\" cannot be"),
        (read(&[("labelsForPV", "{a: -b}")]), "labelsForPV: \"a\" with the value \"-b\" cannot be a label"),
        (read(&[("minResyncPeriod", "soon")]), "minResyncPeriod: it has to be a duration such as 5m0s"),
        (read(&[("useAlphaAPI", "true")]), "useAlphaAPI: the alpha annotation"),
        (read(&[("useJobForCleaning", "true")]), "useJobForCleaning: Jobs are not supported: cleaning is always done"),
        (
            read(&[("removeNodeNotReadyTaint", "true")]),
            "provisionerNotReadyNodeTaintKey: removeNodeNotReadyTaint needs",
        ),
    ];
    for (outcome, expected) in cases {
        let error = outcome.expect_err(expected);
        assert!(error.contains(expected), "{error:?} says {expected:?}");
    }
}
