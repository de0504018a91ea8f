//! The endpoints of a running controller, and `bindery explain` on its cluster: a real API server,
//! under the service account of deploy/.

mod service_account;

use std::process::Command;

use bindery_test_cluster::{KUBECTL_TIMEOUT, Running, TestCluster, wait_until};
use serde_json::Value;

const OBJECTS: &str = r#"
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: slow}, provisioner: example.com/not-running}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: small}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
 storageClassName: static, hostPath: {path: /tmp/small}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: large}, spec: {capacity: {storage: 9Gi}, accessModes: [ReadWriteOnce],
 storageClassName: static, hostPath: {path: /tmp/large}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fits}, spec: {accessModes: [ReadWriteOnce],
 storageClassName: static, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: too-big}, spec: {accessModes: [ReadWriteOnce],
 storageClassName: static, resources: {requests: {storage: 20Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: classless}, spec: {accessModes: [ReadWriteOnce],
 resources: {requests: {storage: 1Gi}}}}
"#;

/// The controller's response at a path.
fn get(controller: &Running, path: &str) -> String {
    controller.page(path).expect("an answer")
}

fn state(controller: &Running, query: &str) -> Value {
    serde_json::from_str(&get(controller, &format!("/debug/state.json{query}"))).expect("JSON")
}

/// A cluster with objects, and a leading controller that has processed them.
fn settled() -> Option<(TestCluster, Running)> {
    let test_cluster = service_account::cluster(TestCluster::builder())?;
    test_cluster.kubectl_with_input(OBJECTS, ["apply", "-f", "-"]).expect("objects are created");
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&test_cluster, "controller").display());
    let args = ["controller", &kubeconfig, "--listen=127.0.0.1:0"];
    let controller = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts");
    let wait = ["wait", "pvc/fits", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT];
    test_cluster.kubectl(wait).expect("the claim is bound");
    let default = r#"{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}"#;
    test_cluster
        .kubectl(["patch", "storageclass", "slow", "--type=merge", "-p", default])
        .expect("the class is the default");
    let wait = ["wait", "pvc/classless", "--for=jsonpath={.spec.storageClassName}=slow", KUBECTL_TIMEOUT];
    test_cluster.kubectl(wait).expect("the claim gets the default class");
    Some((test_cluster, controller))
}

#[test]
fn feature_gates_follow_the_version_of_the_api_server() {
    let Some((test_cluster, controller)) = settled() else { return };
    let log = controller.log();
    let gate = log.lines().find(|line| line.contains("feature gate set")).expect("the gate is logged");
    for part in ["PersistentVolumeClaimUnusedSinceTime", "\"is_on\":false", "the API server is 1.36"] {
        assert!(gate.contains(part), "{part} is missing: {gate}");
    }
    let conditions = test_cluster.kubectl(["get", "pvc/fits", "-o", "jsonpath={.status.conditions}"]);
    assert_eq!(conditions.expect("the claim exists"), "", "the condition Unused is new in 1.37");
}

#[test]
fn metrics_health_and_debug_state_are_served() {
    let Some((_lab, controller)) = settled() else { return };
    let expected = [
        "pv_collector_bound_pv_count{storage_class=\"static\"} 1",
        "pv_collector_unbound_pvc_count{namespace=\"default\",storage_class=\"slow\",volume_attributes_class=\"\"} 1",
        "retroactive_storageclass_total 1",
        "retroactive_storageclass_errors_total 0",
        "workqueue_depth{name=\"claims\"} 0",
        "leader_election_master_status{name=\"bindery-controller\"} 1",
        "bindery_resync_finds_total 0",
    ];
    // Others may see the controller's write before it has the response.
    let mut metrics = String::new();
    let missing = |metrics: &str| expected.into_iter().find(|line| !metrics.lines().any(|expected| expected == *line));
    let are_served = wait_until(|| {
        metrics = get(&controller, "/metrics");
        missing(&metrics).is_none()
    });
    assert!(are_served, "{:?} is missing in\n{metrics}", missing(&metrics));
    for name in [
        "workqueue_adds_total{name=\"volumes\"}",
        "workqueue_retries_total{name=\"claims\"}",
        "workqueue_queue_duration_seconds_bucket{le=\"0.001\",name=\"claims\"}",
        "workqueue_work_duration_seconds_count{name=\"claims\"}",
        "workqueue_depth{name=\"ephemeral_volume\"} 0",
        "workqueue_adds_total{name=\"pvcprotection\"}",
        "ephemeral_volume_controller_create_total 0",
        "ephemeral_volume_controller_create_failures_total 0",
        "bindery_decision_seconds_count",
        "bindery_verdicts_total{rule=\"claim.unbound.default-class\"}",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} is missing in\n{metrics}");
    }
    assert_eq!(get(&controller, "/healthz"), "ok");
    assert_eq!(get(&controller, "/readyz"), "ok");

    let all = state(&controller, "");
    assert_eq!(all["isLeader"], true);
    assert_eq!(all["controllers"].as_array().map(Vec::len), Some(6), "{all}");
    assert_eq!(all["lease"]["holder"], all["lease"]["identity"]);
    assert!(all["watches"]["PersistentVolumeClaim"]["version"].as_u64() > Some(0), "{all}");
    let claim = state(&controller, "?pvc=default/fits");
    let verdicts = claim["lastVerdicts"].as_array().expect("verdicts").iter();
    let of_binder = verdicts.filter(|verdict| verdict["controller"] == "persistentvolume-binder");
    let steps: Vec<&str> = of_binder.filter_map(|verdict| verdict["step"].as_str()).collect();
    assert_eq!(steps.len(), 4, "a bind is four writes: {claim}");
    assert_eq!(claim["verdictNow"][0]["rule"], "claim.bound.correct", "{claim}");
    assert_eq!(state(&controller, "?pv=nowhere")["verdictNow"], Value::Null);
}

#[test]
fn explain_works_on_a_cluster() {
    let Some((test_cluster, _controller)) = settled() else { return };
    let kubeconfig = service_account::kubeconfig(&test_cluster, "controller");
    let explain = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args(["explain", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(args)
            .output()
            .expect("bindery runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it writes UTF-8")
    };
    let pending = explain(&["pvc/too-big"]);
    assert!(pending.contains("large     needs 20Gi, has 9Gi\n"), "{pending}");
    assert!(pending.contains("small"), "{pending}");
    let bound: Value = serde_json::from_str(&explain(&["pv/small", "-o", "json"])).expect("JSON");
    assert_eq!(bound["rule"], "volume.claimed.bound", "{bound}");
}
