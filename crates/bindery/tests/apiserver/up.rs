//! `bindery up` as a process: the demo, and all controllers with kubectl.

use std::process::Command;

use bindery_test_cluster::KUBECTL_TIMEOUT;

use crate::server::Server;

#[test]
fn the_demo_shows_each_step_and_its_rule() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).args(["up", "--demo"]).output().expect("bindery runs");
    let text = String::from_utf8(output.stdout).expect("it writes UTF-8");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let shown = [
        "claim.unbound.fits -> bind.1-reserve-volume",
        "bind.2-mark-volume",
        "bind.3-point-claim",
        "bind.4-mark-claim",
        "claim data is bound to disk-10",
        "claim.unbound.waits-for-consumer",
        "schedule.nominate",
        "schedule.bind-volumes -> placement.bind.reserve-volume",
        "schedule.bind",
        "claim example-local-claim is bound to example-local-pv, and example-pod is assigned to node-2",
        "disk-20           needs 50Gi, has 20Gi",
    ];
    let mut rest = text.as_str();
    for words in shown {
        let at = rest.find(words).unwrap_or_else(|| panic!("{words:?} is missing or out of order in\n{text}"));
        rest = &rest[at + words.len()..];
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
}

const OBJECTS: &str = r"
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 2Gi},
 accessModes: [ReadWriteOnce], storageClassName: '', hostPath: {path: /tmp/disk}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
 storageClassName: '', resources: {requests: {storage: 1Gi}}}}
";

#[test]
fn a_claim_created_with_kubectl_is_bound() {
    let Some(mut server) = Server::up_for_kubectl(&[]) else { return };
    server.create(OBJECTS);
    server.ok(&["wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT]);
    let table = server.ok(&["get", "pvc", "--no-headers"]);
    assert!(table.split_whitespace().take(4).eq(["data", "Bound", "disk", "2Gi"]), "{table}");
    server.stop();
}
