//! Several instances: a leader with standbys, and two instances without leader election.

use std::time::Duration;

use bindery_test_cluster::{Running, TIMEOUT};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{Cluster, eventually, lines};
use crate::servers::{self, ApiServer};

/// Long enough for the leader to renew its lease on a busy machine.
const LEASE: Duration = Duration::from_secs(15);
const SHORT: [&str; 3] =
    ["--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=500ms"];
/// Longer than the test waits: a successor can only acquire such a lease after it was released.
const LONG: [&str; 3] =
    ["--leader-elect-lease-duration=3600s", "--leader-elect-renew-deadline=600s", "--leader-elect-retry-period=500ms"];

fn is_leader(controller: &Running) -> bool {
    !lines(controller, "lease acquired").is_empty()
}

async fn becomes_leader(controller: &Running) {
    eventually(|| format!("it is the leader: {}", controller.log()), || is_leader(controller)).await;
}

/// Waits until it is a synced standby.
async fn becomes_standby(controller: &Running) {
    let knows = |kind: &str| lines(controller, "listed").iter().any(|line| line["kind"] == kind);
    let knows_all = || knows("PersistentVolume") && knows("PersistentVolumeClaim");
    eventually(|| format!("it is a standby: {}", controller.log()), knows_all).await;
    assert!(!is_leader(controller), "another instance is the leader");
}

async fn lease(cluster: &Cluster) -> Value {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bindery-controller";
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    cluster.client.request(request).await.expect("the lease")
}

fn moment(lease: &Value, field: &str) -> Timestamp {
    lease["spec"][field].as_str().expect("a timestamp").parse().expect("a timestamp")
}

on_each_server!(a_standby_takes_over_from_a_killed_or_stopped_leader);

async fn a_standby_takes_over_from_a_killed_or_stopped_leader(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let start =
        |flags: &[&str]| cluster.controller_at(&servers::kubeconfig(&cluster.test_cluster, "controller"), flags);
    let mut first = start(&SHORT);
    becomes_leader(&first).await;
    let mut second = start(&SHORT);
    becomes_standby(&second).await;
    cluster.make_pairs("first", 20, 0).await;
    cluster.bound(20).await;
    assert!(lines(&second, "decided").is_empty(), "a standby decides nothing");

    // A killed leader leaves its lease behind, which expires.
    first.kill().expect("killed");
    let left = lease(&cluster).await;
    cluster.make_pairs("second", 20, 0).await;
    becomes_leader(&second).await;
    let taken = lease(&cluster).await;
    assert_ne!(taken["spec"]["holderIdentity"], left["spec"]["holderIdentity"]);
    assert_eq!(taken["spec"]["leaseTransitions"], 1);
    let waited = moment(&taken, "acquireTime").duration_since(moment(&left, "renewTime")).unsigned_abs();
    println!("taken over after {waited:?}");
    assert!(waited >= LEASE, "the lease was taken before it expired, after {waited:?}");
    cluster.bound(40).await;

    // A leader that is stopped releases its lease, so the standby need not wait for its expiry.
    let mut third = start(&LONG);
    becomes_standby(&third).await;
    cluster.make_pairs("third", 20, 0).await;
    second.terminate().expect("signalled");
    let ended = second.wait(TIMEOUT).expect("it ends");
    assert!(ended.success(), "{ended}: {}", second.log());
    assert_eq!(lines(&second, "lease released").len(), 1, "{}", second.log());
    becomes_leader(&third).await;
    cluster.check(60).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is complete");
    assert_eq!(third.ended(), None);
}

on_each_server!(two_active_controllers_keep_all_promises);

async fn two_active_controllers_keep_all_promises(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let mut both = [cluster.controller(&[]), cluster.controller(&[])];
    for controller in &both {
        eventually(|| "it knows the cluster".into(), || lines(controller, "listed").len() >= 2).await;
    }
    cluster.make_pairs("pair", 300, 0).await;
    cluster.check(300).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is complete");
    for controller in &mut both {
        assert_eq!(controller.ended(), None);
        assert!(!lines(controller, "decided").is_empty(), "both were active");
    }
}
