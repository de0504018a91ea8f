//! `bindery explain`, from the outside, on what kubectl wrote.

use std::process::{Command, Output};

use serde_json::{Value, json};

const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump.yaml");

/// A pod that finds no node, and one that has its own.
const PODS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pods.yaml");

fn bindery(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bindery")).arg("--log-format=text").args(args).output().expect("bindery runs")
}

fn explain(args: &[&str]) -> String {
    explain_in(DUMP, args)
}

fn explain_in(dump: &str, args: &[&str]) -> String {
    let output = bindery(&[&["explain", "-f", dump], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).expect("it writes UTF-8")
}

fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = bindery(args);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_pending_claim_is_explained() {
    let expected = r#"default/data is Pending   [provision.no-plugin]
The StorageClass names an in-tree provisioner that cannot provision volumes, such as kubernetes.io/no-provisioner. The claim stays Pending until a matching volume is created or the class is replaced.
  requests  10Gi, ReadWriteOnce, Filesystem, class "fast"
  event     ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner
  next      nothing, until something changes
  pv-3      needs 10Gi, has 8Gi
  pv-1      lacks ReadWriteOnce
  pv-7      reserved for default/other
  14 more   of class "slow"
It binds when a volume of class "fast" with 10Gi or more for ReadWriteOnce becomes Available.
"#;
    assert_eq!(explain(&["pvc/data"]), expected);
    assert_eq!(explain(&["persistentvolumeclaim/data", "-n", "default", "--output", "text"]), expected);
}

#[test]
fn all_candidates_get_a_line_when_asked_for() {
    let text = explain(&["pvc/data", "--all"]);
    assert_eq!(text.matches("other class \"slow\"").count(), 14, "{text}");
    assert!(!text.contains(" more  "), "no group is left: {text}");
}

#[test]
fn a_claim_in_another_namespace_would_bind() {
    let text = explain(&["pvc/logs", "--namespace=prod"]);
    assert!(text.contains("bind      would bind to slow-00\n"), "{text}");
    let volume = explain(&["pv/slow-00"]);
    assert!(volume.contains("would bind to prod/logs\n"), "{volume}");
}

#[test]
fn programs_read_json() {
    let read = |args: &[&str]| -> Value { serde_json::from_str(&explain(args)).expect("it writes JSON") };
    let explained = read(&["pvc/data", "-o", "json"]);
    assert_eq!(explained["rule"], "provision.no-plugin");
    assert_eq!(explained["next"]["action"], "nothing");
    assert_eq!(explained["bind"], Value::Null);
    assert_eq!(explained["candidates"][0], json!({"name": "pv-3", "fits": false, "why": ["needs 10Gi, has 8Gi"]}));
    assert_eq!(explained["more"], json!([{"count": 14, "what": "of class \"slow\""}]));

    let explained = read(&["pvc/logs", "-n", "prod", "-o", "json"]);
    assert_eq!(explained["bind"], json!({"to": "slow-00", "isDone": false, "rivals": []}));
    assert_eq!(explained["next"]["step"], "bind.1-reserve-volume");

    let fields: Vec<&String> = explained.as_object().expect("it is an object").keys().collect();
    let stable = [
        "bind",
        "candidates",
        "change",
        "controllers",
        "events",
        "isDeleting",
        "kind",
        "matrix",
        "more",
        "name",
        "namespace",
        "next",
        "note",
        "phase",
        "provisioning",
        "reason",
        "rejected",
        "rule",
        "terms",
        "waitsFor",
    ];
    assert_eq!(fields, stable, "programs rely on these");
}

#[test]
fn a_pod_that_waits_is_explained() {
    let expected = r#"default/db is waiting for a node   [schedule.unschedulable]
No node is suitable. The reasons are published with the number of nodes they apply to, and the pod is retried when one of them changes.
  event  FailedScheduling: 0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't find available persistent volumes to bind. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.
  next   updates Pod default/db
  data   volume data; Pending: see bindery explain pvc/data
  logs   volume logs; Bound to nfs
  node                    claim data                                     claim logs              other checks
  n1                      would use disk-1                              bound to nfs, reachable  taint dedicated=batch:NoSchedule
  n2                      no matching volume; disk-2: needs 10Gi, has 5Gi  bound to nfs, reachable  fits
  n3 and 1 similar node   no matching volume                             bound to nfs, reachable  fits
Smallest change: remove the taint dedicated=batch:NoSchedule from node n1, or tolerate it. Then it can be scheduled on node n1.
"#;
    let columns =
        |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    let text = explain_in(PODS, &["pod/db"]);
    assert_eq!(columns(&text), columns(expected));

    let json: Value = serde_json::from_str(&explain_in(PODS, &["pod/db", "-o", "json"])).expect("it writes JSON");
    assert_eq!(json["matrix"]["claims"], json!(["data", "logs"]));
    let row = json!({
        "node": "n1", "similarNodes": 0, "fits": false, "otherReasons": ["taint dedicated=batch:NoSchedule"],
        "claims": [{"fits": true, "text": "would use disk-1"}, {"fits": true, "text": "bound to nfs, reachable"}],
    });
    assert_eq!(json["matrix"]["rows"][0], row);
    let steps = ["remove the taint dedicated=batch:NoSchedule from node n1, or tolerate it"];
    assert_eq!(json["change"], json!({"node": "n1", "steps": steps}));

    let all = explain_in(PODS, &["pod/db", "--all"]);
    assert!(all.contains("\n  n4 ") && !all.contains("similar"), "{all}");
    let placed = explain_in(PODS, &["pod/web"]);
    assert!(placed.starts_with("default/web is on node n2   [schedule.assigned]\n"), "{placed}");
}

#[test]
fn a_malformed_claim_is_explained() {
    let text = explain(&["pvc/broken"]);
    assert!(text.contains("spec.resources.requests.storage: \"plenty\": it is not a number"), "{text}");
}

#[test]
fn what_does_not_exist_is_an_error() {
    assert_eq!(
        refused(&["explain", "-f", DUMP, "pv/nothing"]),
        (Some(1), "ERROR PersistentVolume nothing does not exist\n".into())
    );
    let elsewhere =
        "ERROR PersistentVolumeClaim default/logs does not exist; namespace prod has one with that name: try -n prod\n";
    assert_eq!(refused(&["explain", "-f", DUMP, "pvc/logs"]), (Some(1), elsewhere.into()));
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let (code, error) = refused(&["explain", "-f", "/does/not/exist", "pvc/data"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("ERROR cannot read /does/not/exist: "), "{error}");
    let (code, error) = refused(&["explain", "-f", DUMP, "secret/data"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("cannot explain \"secret\": expected pvc/NAME"), "{error}");
}

#[test]
fn shells_complete_it() {
    for shell in ["bash", "zsh", "fish"] {
        let output = bindery(&["completions", shell]);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("explain"), "{shell}");
    }
}
