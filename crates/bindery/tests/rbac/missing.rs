//! A missing permission is visible everywhere: in the log, the metrics, the readiness, an event and
//! `bindery explain`; and granting it is enough.

use std::process::Command;

use bindery_test_cluster::{KUBECTL_TIMEOUT, Running, TestCluster, eventually};
use serde_json::Value;

use crate::audit::{event_count, json, make};
use crate::service_account;

const STEP: &str = "bind.1-reserve-volume";

const OBJECTS: &str = "apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: data
  hostPath: {path: /tmp/data}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  storageClassName: data
";

/// Replaces the verbs on PersistentVolumes in the role.
fn set_verbs(test_cluster: &TestCluster, change: impl Fn(&mut Vec<Value>)) {
    let mut role = json(test_cluster, &["get", "clusterrole", "bindery"]);
    for rule in role["rules"].as_array_mut().expect("rules") {
        let resources = rule["resources"].as_array().expect("resources");
        if resources.iter().any(|resource| resource == "persistentvolumes") {
            change(rule["verbs"].as_array_mut().expect("verbs"));
        }
    }
    test_cluster.kubectl_with_input(&role.to_string(), ["replace", "-f", "-"]).expect("the role is replaced");
}

/// The lines of the log with a message.
fn lines(controller: &Running, message: &str) -> Vec<Value> {
    let log = controller.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message).collect()
}

fn explain(test_cluster: &TestCluster, flags: &[&str]) -> String {
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    let args = [&["explain", "pvc/data", &kubeconfig], flags].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).args(args).output().expect("bindery runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_missing_permission_is_visible_until_it_is_granted() {
    let Some(test_cluster) = service_account::cluster(TestCluster::builder()) else { return };
    set_verbs(&test_cluster, |verbs| verbs.retain(|verb| verb != "patch"));
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&test_cluster, "controller").display());
    let args = ["controller", &kubeconfig, "--listen=127.0.0.1:0"];
    let mut controller = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts");
    let page = |path: &str| controller.page(path).expect("it answers");
    eventually("the missing permission is found at start", || !lines(&controller, "permission missing").is_empty());
    let missing = &lines(&controller, "permission missing")[0];
    assert_eq!((&missing["level"], &missing["permission"]), (&"ERROR".into(), &"patch persistentvolumes".into()));
    eventually("it is not ready", || page("/readyz") == "missing permission: patch persistentvolumes");

    make(&test_cluster, OBJECTS);
    // The finalizer of the volume is rejected, too.
    let rejected = || lines(&controller, "request rejected").into_iter().find(|line| line["step"] == STEP);
    eventually("the rejected request is logged", || rejected().is_some());
    let rejected = rejected().expect("a line");
    assert_eq!((&rejected["level"], &rejected["status"]), (&"WARN".into(), &403.into()), "{rejected}");
    assert_eq!(rejected["object"], "PersistentVolumeClaim default/data");
    assert!(rejected["error"].as_str().is_some_and(|error| error.contains("is forbidden: User")), "{rejected}");
    let counted = format!("bindery_requests_rejected_total{{status=\"403\",step=\"{STEP}\"}}");
    eventually("it is counted", || page("/metrics").contains(&counted));
    assert!(page("/metrics").contains("bindery_permissions_missing 1"), "{}", page("/metrics"));
    let state: Value = serde_json::from_str(&page("/debug/state.json")).expect("JSON");
    let is_shown = |rejection: &Value| rejection["step"] == STEP && rejection["status"] == 403;
    assert!(state["rejections"].as_array().expect("a list").iter().any(is_shown), "{state}");

    eventually("the claim has an event", || event_count(&test_cluster, "RequestRejected", "is forbidden") == 1);
    let log = controller.log();
    let address =
        log.lines().find_map(|line| line.split_once(r#""address":""#)?.1.split_once('"')).expect("an address");
    for flags in [vec![], vec![format!("--controller={}", address.0)]] {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let text = explain(&test_cluster, &flags);
        assert!(text.contains("rejected") && text.contains(STEP) && text.contains("is forbidden: User"), "{text}");
    }

    set_verbs(&test_cluster, |verbs| verbs.push("patch".into()));
    let bound = ["wait", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT, "pvc/data"];
    test_cluster.kubectl(bound).expect("the claim is bound");
    eventually("it is ready", || page("/readyz") == "ok");
    assert_eq!(event_count(&test_cluster, "RequestRejected", "is forbidden"), 1, "the event was not repeated");
    assert!(controller.ended().is_none(), "without a restart");
    assert!(!explain(&test_cluster, &[]).contains("rejected"), "the work is done");
}
