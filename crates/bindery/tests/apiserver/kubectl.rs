//! Everyday kubectl commands on `bindery up`.

use std::io::{BufRead as _, BufReader};

use bindery_test_cluster::KUBECTL_TIMEOUT;

use crate::server::Server;

const VOLUME: &str = r"
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-a, labels: {tier: gold}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  hostPath: {path: /tmp/a}
";

const CLAIM: &str = r"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 1Gi}}
";

const CONFIG: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
";

/// The cells of a printed table, separated by two or more blanks.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn api_resources_names_every_kind() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let named = server.ok(&["api-resources", "--no-headers", "-o", "name"]);
    for resource in [
        "namespaces",
        "nodes",
        "pods",
        "persistentvolumes",
        "persistentvolumeclaims",
        "events",
        "events.events.k8s.io",
        "configmaps",
        "secrets",
        "serviceaccounts",
        "storageclasses.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "leases.coordination.k8s.io",
    ] {
        assert!(named.lines().any(|line| line == resource), "{resource} is missing in\n{named}");
    }
    let table = server.ok(&["api-resources", "--api-group", "storage.k8s.io"]);
    assert!(
        table.lines().any(|line| cells(line) == ["storageclasses", "sc", "storage.k8s.io/v1", "false", "StorageClass"]),
        "{table}"
    );
}

#[test]
fn create_and_get_wide() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    assert_eq!(server.create(VOLUME), "persistentvolume/pv-a created\n");
    let again = server.kubectl_with_input(VOLUME, &["create", "-f", "-"]).expect_err("it exists");
    assert!(
        again.contains("(AlreadyExists): error when creating \"STDIN\": persistentvolumes \"pv-a\" already exists"),
        "{again}"
    );
    let table = server.ok(&["get", "pv", "-o", "wide"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        cells(lines[0]).join("|"),
        "NAME|CAPACITY|ACCESS MODES|RECLAIM POLICY|STATUS|CLAIM|STORAGECLASS|VOLUMEATTRIBUTESCLASS|REASON|AGE|VOLUMEMODE"
    );
    let row = cells(lines[1]);
    assert_eq!(row[..4], ["pv-a", "1Gi", "RWO", "Retain"]);
    assert!(row.contains(&"fast") && row.contains(&"<unset>") && row.ends_with(&["Filesystem"]), "{row:?}");
    let missing = server.kubectl(&["get", "pv", "none"]).expect_err("it is not there");
    assert!(missing.contains("Error from server (NotFound): persistentvolumes \"none\" not found"), "{missing}");
    let empty = server.kubectl_command(&["get", "pvc"]).output().expect("kubectl runs");
    assert_eq!(String::from_utf8_lossy(&empty.stderr), "No resources found in default namespace.\n");
}

#[test]
fn apply_twice_changes_nothing() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let apply = |yaml: &str| server.kubectl_with_input(yaml, &["apply", "-f", "-"]).expect("it is applied");
    assert_eq!(apply(CONFIG), "configmap/settings created\n");
    let version = || server.ok(&["get", "configmap", "settings", "-o", "jsonpath={.metadata.resourceVersion}"]);
    let first = version();
    assert_eq!(apply(CONFIG), "configmap/settings unchanged\n");
    assert_eq!(version(), first);
    assert_eq!(apply(&CONFIG.replace("blue", "red")), "configmap/settings configured\n");
    assert_eq!(server.ok(&["get", "configmap", "settings", "-o", "jsonpath={.data.colour}"]), "red");
}

#[test]
fn server_side_apply_reports_conflicts() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let apply = |yaml: &str, more: &[&str]| {
        let args = [&["apply", "--server-side", "-f", "-"], more].concat();
        server.kubectl_with_input(yaml, &args)
    };
    assert_eq!(apply(CONFIG, &[]), Ok("configmap/settings serverside-applied\n".to_owned()));
    assert_eq!(apply(CONFIG, &[]), Ok("configmap/settings serverside-applied\n".to_owned()));
    let red = CONFIG.replace("blue", "red");
    let conflict = apply(&red, &["--field-manager", "other"]).expect_err("another manager owns the field");
    assert!(conflict.contains("Apply failed with 1 conflict: conflict with \"kubectl\": .data.colour"), "{conflict}");
    apply(&red, &["--field-manager", "other", "--force-conflicts"]).expect("it is forced");
    assert_eq!(server.ok(&["get", "configmap", "settings", "-o", "jsonpath={.data.colour}"]), "red");
}

#[test]
fn get_watch_prints_changes() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(VOLUME);
    // Wait for the binder's writes, so that the watch prints only what follows.
    server.ok(&["wait", "pv/pv-a", "--for=jsonpath={.status.phase}=Available", KUBECTL_TIMEOUT]);
    let mut watch =
        server.kubectl_command(&["get", "pv", "--watch", "--output-watch-events"]).spawn().expect("kubectl starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("stdout is piped")).lines();
    let mut next = || lines.next().expect("the watch continues").expect("it is text");
    assert!(next().starts_with("EVENT"));
    let printed = |line: String| cells(&line)[..2].join(" ");
    assert_eq!(printed(next()), "ADDED pv-a");
    server.ok(&["label", "pv", "pv-a", "seen=yes"]);
    assert_eq!(printed(next()), "MODIFIED pv-a");
    server.ok(&["delete", "pv", "pv-a"]);
    // It is marked as deleting, and deleted when the protection finalizer is removed.
    assert_eq!(printed(next()), "MODIFIED pv-a");
    assert_eq!(printed(next()), "DELETED pv-a");
    watch.kill().expect("it can be killed");
    watch.wait().expect("it ends");
}

#[test]
fn describe_shows_events() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(CLAIM);
    let uid = server.ok(&["get", "pvc", "data", "-o", "jsonpath={.metadata.uid}"]);
    server.create(&format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: data.1}}, type: Normal, reason: FailedBinding, message: nothing fits, \
         source: {{component: tester}}, count: 3, firstTimestamp: 2026-01-01T00:00:00Z, lastTimestamp: 2026-01-01T00:00:00Z, \
         involvedObject: {{kind: PersistentVolumeClaim, apiVersion: v1, namespace: default, name: data, uid: {uid}}}}}"
    ));
    let text = server.ok(&["describe", "pvc", "data"]);
    for words in [
        "Name:          data",
        "Status:        Pending",
        "Finalizers:    [kubernetes.io/pvc-protection]",
        "FailedBinding",
        "nothing fits",
    ] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
    let events = server.ok(&["events", "--for", "pvc/data"]);
    assert!(events.contains("PersistentVolumeClaim/data") && events.contains("nothing fits"), "{events}");
    let events = server.ok(&["get", "events"]);
    assert!(events.contains("persistentvolumeclaim/data"), "{events}");
}

#[test]
fn label_annotate_and_patch() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(VOLUME);
    assert_eq!(server.ok(&["label", "pv", "pv-a", "a=b"]), "persistentvolume/pv-a labeled\n");
    assert_eq!(server.ok(&["label", "pv", "pv-a", "tier-"]), "persistentvolume/pv-a unlabeled\n");
    assert_eq!(server.ok(&["get", "pv", "-l", "a in (b,c),!tier", "-o", "name"]), "persistentvolume/pv-a\n");
    assert_eq!(server.ok(&["get", "pv", "-l", "tier", "-o", "name"]), "");
    assert_eq!(server.ok(&["annotate", "pv", "pv-a", "note=x"]), "persistentvolume/pv-a annotated\n");
    let patch = |kind: &str, patch: &str| server.ok(&["patch", "pv", "pv-a", "--type", kind, "-p", patch]);
    patch("merge", r#"{"metadata":{"annotations":{"merge":"1"}}}"#);
    patch("strategic", r#"{"metadata":{"annotations":{"strategic":"1"}}}"#);
    patch("json", r#"[{"op":"add","path":"/metadata/annotations/json","value":"1"}]"#);
    let notes = server.ok(&["get", "pv", "pv-a", "-o", "jsonpath={.metadata.annotations}"]);
    assert_eq!(notes, r#"{"json":"1","merge":"1","note":"x","strategic":"1"}"#);
    let failed = server.kubectl(&[
        "patch",
        "pv",
        "pv-a",
        "--type=json",
        "-p",
        r#"[{"op":"test","path":"/metadata/name","value":"x"}]"#,
    ]);
    assert!(
        failed.expect_err("the test fails").contains("the server rejected our request due to an error in our request")
    );
}

#[test]
fn edit_with_a_custom_editor() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(CONFIG);
    let output = server
        .kubectl_command(&["edit", "configmap", "settings"])
        // Not a script: executing a file just written may fail with ETXTBSY while other tests fork.
        .env("EDITOR", "sed -i s/blue/green/")
        .output()
        .expect("kubectl runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "configmap/settings edited\n", "{output:?}");
    assert_eq!(server.ok(&["get", "configmap", "settings", "-o", "jsonpath={.data.colour}"]), "green");
}

#[test]
fn wait_for_a_condition() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(CLAIM);
    let wait = server
        .kubectl_command(&["wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT])
        .spawn()
        .expect("kubectl starts");
    // Create the volume, so that the binder binds the claim.
    server.create(VOLUME);
    let output = wait.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "persistentvolumeclaim/data condition met\n", "{output:?}");
}

#[test]
fn a_finalizer_delays_deletion() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    server.create(CONFIG);
    assert_eq!(
        server.ok(&["delete", "configmap", "settings"]),
        "configmap \"settings\" deleted from default namespace\n"
    );
    // A custom finalizer, because claim protection removes its own immediately.
    server.create(&CLAIM.replace("{name: data}", "{name: data, finalizers: [example.com/mine]}"));
    server.ok(&["delete", "pvc", "data", "--wait=false"]);
    let phase = server.ok(&["get", "pvc", "data", "--no-headers"]);
    assert_eq!(cells(&phase)[1], "Terminating");
    let wait =
        server.kubectl_command(&["delete", "pvc", "data", "--ignore-not-found"]).spawn().expect("kubectl starts");
    server.ok(&["patch", "pvc", "data", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    let output = wait.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    server.kubectl(&["get", "pvc", "data"]).expect_err("it is deleted");
}

#[test]
fn explain_describes_fields() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let text = server.ok(&["explain", "pvc.spec.accessModes"]);
    assert!(
        text.contains("KIND:       PersistentVolumeClaim") && text.contains("FIELD: accessModes <[]string>"),
        "{text}"
    );
    let unknown = server.kubectl(&["explain", "pvc.spec.nothing"]).expect_err("there is no such field");
    assert!(unknown.contains("field \"nothing\" does not exist"), "{unknown}");
}

#[test]
fn unknown_fields_are_rejected() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let strange = CLAIM.replace("storageClassName: fast", "storageClass: fast");
    let message = server.kubectl_with_input(&strange, &["create", "-f", "-"]).expect_err("it is refused");
    assert!(message.contains("strict decoding error: unknown field \"spec.storageClass\""), "{message}");
    let output = server.kubectl_with_input(&strange, &["create", "--validate=warn", "-f", "-"]);
    assert_eq!(output, Ok("persistentvolumeclaim/data created\n".to_owned()));
}

#[test]
fn the_administrator_may_do_everything() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    assert_eq!(server.ok(&["auth", "can-i", "delete", "persistentvolumes"]), "yes\n");
    let message =
        server.kubectl(&["auth", "can-i", "get", "pods", "--as", "jane"]).expect_err("impersonation is rejected");
    assert!(message.contains("does not support impersonation"), "{message}");
    assert!(server.ok(&["auth", "whoami"]).contains("bindery-admin"));
}

#[test]
fn lists_are_paged() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let many: String =
        (0..25).map(|number| format!("---\n{}", CONFIG.replace("settings", &format!("c-{number:02}")))).collect();
    server.create(&many);
    let names = server.ok(&["get", "configmaps", "--chunk-size=10", "-o", "name"]);
    let expected: String = (0..25).map(|number| format!("configmap/c-{number:02}\n")).collect();
    assert_eq!(names, expected);
}

#[test]
fn objects_are_created_from_arguments() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    assert_eq!(server.ok(&["create", "namespace", "team"]), "namespace/team created\n");
    server.ok(&["create", "configmap", "settings", "--from-literal=colour=blue", "-n", "team"]);
    server.ok(&["create", "secret", "generic", "key", "--from-literal=word=open", "-n", "team"]);
    server.ok(&["create", "serviceaccount", "robot", "-n", "team"]);
    let read = |what: &str, path: &str| server.ok(&["get", what, "-n", "team", "-o", &format!("jsonpath={{{path}}}")]);
    assert_eq!(read("configmap/settings", ".data.colour"), "blue");
    assert_eq!(read("secret/key", ".data.word"), "b3Blbg==");
    assert_eq!(read("serviceaccount/robot", ".metadata.name"), "robot");
}

/// kubectl sends the objects of a list one by one; the server validates each.
#[test]
fn a_list_in_a_file_is_created() {
    let Some(server) = Server::up_for_kubectl(&[]) else { return };
    let list = |items: [&str; 2]| {
        let item = |text: &str| format!("  - {}\n", text.trim().replace('\n', "\n    "));
        format!("apiVersion: v1\nkind: List\nitems:\n{}", items.map(item).concat())
    };
    let made = server.kubectl_with_input(&list([CLAIM, CONFIG]), &["create", "-f", "-"]);
    assert_eq!(made.as_deref(), Ok("persistentvolumeclaim/data created\nconfigmap/settings created\n"));
    let applied = server.kubectl_with_input(&list([CLAIM, CONFIG]), &["apply", "-f", "-"]).expect("it is applied");
    assert!(
        applied.starts_with("persistentvolumeclaim/data ") && applied.contains("\nconfigmap/settings "),
        "{applied}"
    );
    let strange = CLAIM.replace("storageClassName: fast", "storageClass: fast").replace("name: data", "name: strange");
    let message =
        server.kubectl_with_input(&list([&strange, CONFIG]), &["create", "-f", "-"]).expect_err("it is refused");
    assert!(message.contains("strict decoding error: unknown field \"spec.storageClass\""), "{message}");
}
