//! The controller is killed repeatedly while it binds: it loses nothing and binds nothing twice.

use crate::cluster::{Cluster, eventually};
use crate::history::Kind;
use crate::servers::ApiServer;

const PAIRS: usize = 1000;
const KILLS: usize = 50;

on_each_server!(a_controller_killed_fifty_times_binds_every_claim_once);

async fn a_controller_killed_fifty_times_binds_every_claim_once(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    cluster.make_pairs("first", PAIRS, 0).await;
    let (mut pairs, mut kills, mut tries) = (PAIRS, 0, 0);
    while kills < KILLS {
        tries += 1;
        assert!(tries <= 4 * KILLS, "only {kills} of {tries} kills happened before all claims were bound");
        // On a slow machine much is written between the check and the kill; add more work then.
        if pairs - cluster.history.count(Kind::Claim, "Bound") < 100 {
            cluster.make_pairs(&format!("more-{tries}"), 100, 0).await;
            pairs += 100;
        }
        let before = cluster.history.len();
        // Slow enough to be killed fifty times, with many writes in flight each time.
        let mut controller = cluster.controller(&["--kube-api-qps=200", "--kube-api-burst=40"]);
        let written = 1 + tries * 7 % 50;
        eventually(
            || format!("it writes {written} times: {}", controller.log()),
            || cluster.history.len() >= before + written,
        )
        .await;
        controller.kill().expect("killed");
        kills += usize::from(cluster.history.count(Kind::Claim, "Bound") < pairs);
    }
    let mut controller = cluster.controller(&[]);
    cluster.check(pairs).await;
    assert_eq!(cluster.history.gaps(), 0, "the history is complete");
    assert_eq!(controller.ended(), None);
}
