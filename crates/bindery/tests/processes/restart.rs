//! The API server goes and comes back, and has forgotten old revisions: the controller goes on.

use crate::cluster::{Cluster, eventually, lines};
use crate::history::Kind;
use crate::servers::ApiServer;

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_was_away_and_forgot_is_no_harm() {
    let Some(mut cluster) = Cluster::for_test(ApiServer::Real).await else { return };
    let mut controller = cluster.controller(&[]);
    cluster.make_pairs("before", 100, 0).await;
    cluster.bound(100).await;

    cluster.make_pairs("during", 200, 0).await;
    let bound = || cluster.history.count(Kind::Claim, "Bound");
    eventually(|| format!("it goes on: {}", controller.log()), || bound() > 110).await;
    cluster.lab.kill_api_server().expect("the API server is killed");
    cluster.lab.compact().expect("etcd forgets");
    cluster.lab.start_api_server().expect("the API server starts again");
    cluster.make_pairs("after", 100, 0).await;
    cluster.bound(400).await;

    // Once more while nothing happens: what is watched is older than what the server remembers.
    cluster.lab.kill_api_server().expect("the API server is killed");
    cluster.lab.compact().expect("etcd forgets");
    cluster.lab.start_api_server().expect("the API server starts again");
    cluster.make_pairs("last", 50, 0).await;
    cluster.check(450).await;
    let was_told = || !lines(&controller, "the server has forgotten where the watch was").is_empty();
    eventually(|| format!("a watch was told so: {}", controller.log()), was_told).await;
    assert_eq!(controller.ended(), None, "{}", controller.log());
}
