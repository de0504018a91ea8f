//! A test cluster: a real API server, its users, and faults.

use std::time::Duration;

use bindery_test_cluster::assets::VERSION;
use bindery_test_cluster::{TIMEOUT, TestCluster, eventually};

const VOLUME: &str = r#"{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}}}"#;

#[test]
fn objects_survive_a_restart_of_the_api_server() {
    let Some(mut cluster) = TestCluster::for_test() else { return };
    cluster.kubectl_with_input(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let capacity = ["get", "persistentvolume", "disk", "-o", "jsonpath={.spec.capacity.storage}"];
    assert_eq!(cluster.kubectl(capacity).expect("the volume exists"), "1Gi");
    let error = cluster.kubectl(["get", "persistentvolume", "other"]).expect_err("no such volume");
    assert!(error.starts_with("kubectl get persistentvolume other: ") && error.contains("NotFound"), "{error}");

    cluster.kill_api_server().expect("the API server is killed");
    cluster.kubectl(capacity).expect_err("the API server is unreachable");
    cluster.start_api_server().expect("the API server starts again");
    assert_eq!(cluster.kubectl(capacity).expect("the volume still exists"), "1Gi");
}

#[test]
fn unknown_tokens_are_rejected_and_users_have_granted_rights() {
    let Some(cluster) = TestCluster::builder().user("system:serviceaccount:default:reader", &["readers"]).for_test()
    else {
        return;
    };
    let volumes = ["get", "persistentvolumes"];

    let with_token = |token: &str| {
        let file = cluster.folder().join("unknown-user");
        let known = std::fs::read_to_string(cluster.kubeconfig()).expect("a kubeconfig");
        let (before, rest) = known.split_once("token: \"").expect("the administrator has a token");
        let (_, after) = rest.split_once('"').expect("which ends");
        std::fs::write(&file, format!("{before}token: \"{token}\"{after}")).expect("another kubeconfig");
        cluster.kubectl_with(&file, volumes, "")
    };
    let error = with_token("unknown").expect_err("an unknown token is rejected");
    assert!(error.contains("You must be logged in"), "{error}");

    let reader = cluster.kubeconfig_of("system:serviceaccount:default:reader").expect("a kubeconfig");
    let error = cluster.kubectl_with(&reader, volumes, "").expect_err("nothing is granted yet");
    assert!(error.contains("Forbidden"), "{error}");
    cluster
        .kubectl(["create", "clusterrole", "reader", "--verb=list", "--resource=persistentvolumes"])
        .expect("a role");
    cluster
        .kubectl(["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=readers"])
        .expect("a grant");
    eventually("the user can list volumes", || cluster.kubectl_with(&reader, volumes, "").is_ok());
}

#[test]
fn watch_from_a_compacted_revision_expires() {
    let Some(mut cluster) = TestCluster::for_test() else { return };
    cluster.kubectl_with_input(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let newest = cluster.compact().expect("etcd is compacted");
    assert!(newest > 1);
    cluster.kill_api_server().and_then(|()| cluster.start_api_server()).expect("the API server starts again");
    let watch = ["get", "--raw", "/api/v1/persistentvolumes?watch=1&resourceVersion=2&timeoutSeconds=5"];
    let answer = cluster.kubectl(watch).unwrap_or_else(|error| error);
    assert!(answer.contains("Expired") || answer.contains("too old resource version"), "{answer}");
}

#[test]
fn programs_run_until_they_are_killed_or_terminated() {
    let Some(cluster) = TestCluster::for_test() else { return };
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig().display());
    let binder = "--controllers=persistentvolume-binder-controller";
    let args =
        [&kubeconfig, binder, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false"];
    let mut controllers = cluster.start_program("kube-controller-manager", args).expect("controllers");
    cluster.kubectl_with_input(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let phase = ["get", "persistentvolume", "disk", "-o", "jsonpath={.status.phase}"];
    eventually("upstream's binder marks the volume Available", || {
        cluster.kubectl(phase).is_ok_and(|phase| phase == "Available")
    });
    assert!(controllers.log().contains(VERSION), "{}", controllers.log());
    assert_eq!(controllers.ended(), None);
    assert!(!controllers.kill().expect("killed").success());

    let error = cluster.start_program("kube-proxy", [""]).map(drop).expect_err("an unknown binary");
    assert!(error.contains("no such file"), "{error}");

    let mut shell = cluster
        .start_program("/bin/sh", ["-c", "trap 'echo terminated; exit 3' TERM; echo up; while :; do sleep 0.1; done"]);
    let shell = shell.as_mut().expect("a shell");
    eventually("the shell is up", || shell.log() == "up\n");
    shell.wait(Duration::from_millis(50)).expect_err("it is still running");
    shell.terminate().expect("SIGTERM is sent");
    assert_eq!(shell.wait(TIMEOUT).expect("it ends").code(), Some(3));
    assert_eq!(shell.log(), "up\nterminated\n");
    shell.terminate().expect_err("it has ended");
}
