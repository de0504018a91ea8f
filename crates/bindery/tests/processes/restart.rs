//! The API server restarts and has compacted old revisions; the controller continues.

use crate::cluster::{Cluster, eventually, lines};
use crate::history::Kind;
use crate::servers::ApiServer;

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_restart_with_compaction_loses_nothing() {
    let Some(mut cluster) = Cluster::for_test(ApiServer::Real).await else { return };
    let mut controller = cluster.controller(&[]);
    cluster.make_pairs("before", 100, 0).await;
    cluster.bound(100).await;

    cluster.make_pairs("during", 200, 0).await;
    let bound = || cluster.history.count(Kind::Claim, "Bound");
    eventually(|| format!("binding continues: {}", controller.log()), || bound() > 110).await;
    cluster.test_cluster.kill_api_server().expect("the API server is killed");
    cluster.test_cluster.compact().expect("etcd is compacted");
    cluster.test_cluster.start_api_server().expect("the API server starts again");
    cluster.make_pairs("after", 100, 0).await;
    cluster.bound(400).await;

    // Again while idle: the watched revision is now older than the oldest stored one.
    cluster.test_cluster.kill_api_server().expect("the API server is killed");
    cluster.test_cluster.compact().expect("etcd is compacted");
    cluster.test_cluster.start_api_server().expect("the API server starts again");
    cluster.make_pairs("last", 50, 0).await;
    cluster.check(450).await;
    let has_expired = || !lines(&controller, "resourceVersion expired, listing again").is_empty();
    eventually(|| format!("a watch has expired: {}", controller.log()), has_expired).await;
    assert_eq!(controller.ended(), None, "{}", controller.log());
}
