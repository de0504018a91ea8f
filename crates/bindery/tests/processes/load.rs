//! More events than a slow client can read: the server closes its watches, and they are resumed.

use std::time::Duration;

use crate::cluster::{Cluster, eventually, lines};
use crate::servers::ApiServer;

const PAIRS: usize = 1000;
const KINDS: [&str; 2] = ["PersistentVolume", "PersistentVolumeClaim"];
/// Large enough to exceed the network buffers, so that the server notices the slow client.
const PADDING: usize = 12_000;
/// The number of attempts until the server has noticed it, which takes time on a slow machine.
const ROUNDS: usize = 5;

on_each_server!(closed_watches_are_resumed_without_a_new_list);

async fn closed_watches_are_resumed_without_a_new_list(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let mut controller = cluster.controller(&[]);
    let about = |controller: &_, message: &str, kind: &str| {
        lines(controller, message).iter().filter(|line| line["kind"] == kind).count()
    };
    eventually(|| "it knows the cluster".into(), || KINDS.iter().all(|kind| about(&controller, "listed", kind) > 0))
        .await;

    let mut resumed = [0, 0];
    for round in 1..=ROUNDS {
        controller.signal("STOP").expect("stopped");
        cluster.make_pairs(&format!("pair-{round}"), PAIRS, PADDING).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        controller.signal("CONT").expect("continued");
        cluster.check(PAIRS * round).await;
        resumed = KINDS.map(|kind| about(&controller, "watch interrupted, resuming", kind));
        println!("round {round}: resumed {resumed:?} times");
        // The embedded server waits for slow clients.
        if api_server == ApiServer::Embedded || resumed.iter().all(|times| *times > 0) {
            break;
        }
    }
    assert_eq!(controller.ended(), None);
    for (kind, resumed) in KINDS.into_iter().zip(resumed) {
        assert_eq!(about(&controller, "listed", kind), 1, "{kind} was listed again: {}", controller.log());
        assert!(
            resumed > 0 || api_server == ApiServer::Embedded,
            "{kind}: the watch was never closed, so the test showed nothing"
        );
    }
}
