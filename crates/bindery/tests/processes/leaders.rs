//! Several instances: one that leads and others that stand by, and two that know nothing of each other.

use std::time::Duration;

use bindery_test_cluster::{TIMEOUT, Running};
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{Cluster, eventually, lines};
use crate::servers::{self, ApiServer};

/// Long enough that whoever leads keeps its lease on a machine that is busy with other things.
const LEASE: Duration = Duration::from_secs(15);
const SHORT: [&str; 3] =
    ["--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=500ms"];
/// Longer than anybody waits here: who takes over from one with such a lease was given it.
const LONG: [&str; 3] =
    ["--leader-elect-lease-duration=3600s", "--leader-elect-renew-deadline=600s", "--leader-elect-retry-period=500ms"];

fn leads(controller: &Running) -> bool {
    !lines(controller, "leads").is_empty()
}

async fn eventually_leads(controller: &Running) {
    eventually(|| format!("it leads: {}", controller.log()), || leads(controller)).await;
}

/// Stands by: it knows the cluster, and does nothing.
async fn eventually_stands_by(controller: &Running) {
    let knows = |kind: &str| lines(controller, "listed").iter().any(|line| line["kind"] == kind);
    let knows_all = || knows("PersistentVolume") && knows("PersistentVolumeClaim");
    eventually(|| format!("it stands by: {}", controller.log()), knows_all).await;
    assert!(!leads(controller), "there is one leader already");
}

async fn lease(cluster: &Cluster) -> Value {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bindery-controller";
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    cluster.client.request(request).await.expect("the lease")
}

fn moment(lease: &Value, field: &str) -> Timestamp {
    lease["spec"][field].as_str().expect("a moment").parse().expect("a moment")
}

on_each_server!(when_the_leader_goes_another_takes_over);

async fn when_the_leader_goes_another_takes_over(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let start = |flags: &[&str]| cluster.controller_at(&servers::kubeconfig(&cluster.lab, "controller"), flags);
    let mut first = start(&SHORT);
    eventually_leads(&first).await;
    let mut second = start(&SHORT);
    eventually_stands_by(&second).await;
    cluster.make_pairs("first", 20, 0).await;
    cluster.bound(20).await;
    assert!(lines(&second, "decided").is_empty(), "who stands by does nothing");

    // Killed, it leaves its lease behind, which runs out.
    first.kill().expect("killed");
    let left = lease(&cluster).await;
    cluster.make_pairs("second", 20, 0).await;
    eventually_leads(&second).await;
    let taken = lease(&cluster).await;
    assert_ne!(taken["spec"]["holderIdentity"], left["spec"]["holderIdentity"]);
    assert_eq!(taken["spec"]["leaseTransitions"], 1);
    let waited = moment(&taken, "acquireTime").duration_since(moment(&left, "renewTime")).unsigned_abs();
    println!("taken over after {waited:?}");
    assert!(waited >= LEASE, "a lease counts until it has run out, not {waited:?}");
    cluster.bound(40).await;

    // Asked to end, it gives the lease up, and another need not wait until it runs out.
    let mut third = start(&LONG);
    eventually_stands_by(&third).await;
    cluster.make_pairs("third", 20, 0).await;
    second.terminate().expect("asked to end");
    let ended = second.wait(TIMEOUT).expect("it ends");
    assert!(ended.success(), "{ended}: {}", second.log());
    assert_eq!(lines(&second, "the lease is released").len(), 1, "{}", second.log());
    eventually_leads(&third).await;
    cluster.check(60).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is whole");
    assert_eq!(third.ended(), None);
}

on_each_server!(two_that_both_lead_keep_all_promises);

async fn two_that_both_lead_keep_all_promises(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let mut both = [cluster.controller(&[]), cluster.controller(&[])];
    for controller in &both {
        eventually(|| "it knows the cluster".into(), || lines(controller, "listed").len() >= 2).await;
    }
    cluster.make_pairs("pair", 300, 0).await;
    cluster.check(300).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is whole");
    for controller in &mut both {
        assert_eq!(controller.ended(), None);
        assert!(!lines(controller, "decided").is_empty(), "both were at work");
    }
}
