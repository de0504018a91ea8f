//! A lab, from the outside: it is a real API server, and it can be troubled.

use std::time::Duration;

use bindery_test_cluster::assets::VERSION;
use bindery_test_cluster::{PATIENCE, TestCluster, eventually};

const VOLUME: &str = r#"{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}}}"#;

#[test]
fn it_keeps_volumes() {
    let Some(mut lab) = TestCluster::for_test() else { return };
    lab.kubectl_reading(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let capacity = ["get", "persistentvolume", "disk", "-o", "jsonpath={.spec.capacity.storage}"];
    assert_eq!(lab.kubectl(capacity).expect("the volume is there"), "1Gi");
    let error = lab.kubectl(["get", "persistentvolume", "other"]).expect_err("no such volume");
    assert!(error.starts_with("kubectl get persistentvolume other: ") && error.contains("NotFound"), "{error}");

    lab.kill_api_server().expect("the API server is killed");
    lab.kubectl(capacity).expect_err("nobody answers");
    lab.start_api_server().expect("the API server starts again");
    assert_eq!(lab.kubectl(capacity).expect("the volume is still there"), "1Gi");
}

#[test]
fn strangers_are_turned_away_and_users_may_what_they_are_granted() {
    let Some(lab) = TestCluster::builder().user("system:serviceaccount:default:reader", &["readers"]).for_test() else {
        return;
    };
    let volumes = ["get", "persistentvolumes"];

    let with_token = |token: &str| {
        let file = lab.folder().join("stranger");
        let known = std::fs::read_to_string(lab.kubeconfig()).expect("a kubeconfig");
        let (before, rest) = known.split_once("token: \"").expect("the administrator has a token");
        let (_, after) = rest.split_once('"').expect("which ends");
        std::fs::write(&file, format!("{before}token: \"{token}\"{after}")).expect("another kubeconfig");
        lab.kubectl_with(&file, volumes, "")
    };
    let error = with_token("unknown").expect_err("an unknown token is no user's");
    assert!(error.contains("You must be logged in"), "{error}");

    let reader = lab.kubeconfig_of("system:serviceaccount:default:reader").expect("a kubeconfig");
    let error = lab.kubectl_with(&reader, volumes, "").expect_err("nothing is granted yet");
    assert!(error.contains("Forbidden"), "{error}");
    lab.kubectl(["create", "clusterrole", "reader", "--verb=list", "--resource=persistentvolumes"]).expect("a role");
    lab.kubectl(["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=readers"])
        .expect("a grant");
    eventually("the grant counts", || lab.kubectl_with(&reader, volumes, "").is_ok());
}

#[test]
fn a_watch_from_a_forgotten_revision_is_told_so() {
    let Some(mut lab) = TestCluster::for_test() else { return };
    lab.kubectl_reading(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let newest = lab.compact().expect("etcd forgets");
    assert!(newest > 1);
    lab.kill_api_server().and_then(|()| lab.start_api_server()).expect("the API server starts again");
    let watch = ["get", "--raw", "/api/v1/persistentvolumes?watch=1&resourceVersion=2&timeoutSeconds=5"];
    let answer = lab.kubectl(watch).unwrap_or_else(|error| error);
    assert!(answer.contains("Expired") || answer.contains("too old resource version"), "{answer}");
}

#[test]
fn programs_run_beside_it_until_they_are_told_otherwise() {
    let Some(lab) = TestCluster::for_test() else { return };
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
    let binder = "--controllers=persistentvolume-binder-controller";
    let args =
        [&kubeconfig, binder, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false"];
    let mut controllers = lab.start_program("kube-controller-manager", args).expect("controllers");
    lab.kubectl_reading(VOLUME, ["create", "-f", "-"]).expect("a volume is created");
    let phase = ["get", "persistentvolume", "disk", "-o", "jsonpath={.status.phase}"];
    eventually("upstream's binder marks the volume", || lab.kubectl(phase).is_ok_and(|phase| phase == "Available"));
    assert!(controllers.log().contains(VERSION), "{}", controllers.log());
    assert_eq!(controllers.ended(), None);
    assert!(!controllers.kill().expect("killed").success());

    let error = lab.start_program("kube-proxy", [""]).map(drop).expect_err("not one of the programs");
    assert!(error.contains("there is no program"), "{error}");

    let mut patient =
        lab.start_program("/bin/sh", ["-c", "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.1; done"]);
    let patient = patient.as_mut().expect("a shell");
    eventually("the shell is up", || patient.log() == "up\n");
    patient.wait(Duration::from_millis(50)).expect_err("it still runs");
    patient.terminate().expect("asked to end");
    assert_eq!(patient.wait(PATIENCE).expect("it ends").code(), Some(3));
    assert_eq!(patient.log(), "up\nasked\n");
    patient.terminate().expect_err("it has ended");
}
