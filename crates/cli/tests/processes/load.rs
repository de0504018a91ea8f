//! More happens at once than a slow reader takes in: its watches end, and go on from where they were.

use std::time::{Duration, Instant};

use crate::cluster::{Cluster, eventually, lines};
use crate::servers::ApiServer;

const PAIRS: usize = 1000;
const KINDS: [&str; 2] = ["PersistentVolume", "PersistentVolumeClaim"];
/// So large that the network between holds a part of it only, and the server sees that nobody reads.
const PADDING: usize = 12_000;

on_each_server!(watches_that_fell_behind_are_resumed_without_a_new_list);

async fn watches_that_fell_behind_are_resumed_without_a_new_list(api_server: ApiServer) {
    let Some(cluster) = Cluster::for_test(api_server).await else { return };
    let mut controller = cluster.controller(&[]);
    let about =
        |message: &str, kind: &str| lines(&controller, message).iter().filter(|line| line["kind"] == kind).count();
    eventually(|| "it knows the cluster".into(), || KINDS.iter().all(|kind| about("listed", kind) > 0)).await;

    let stopped = Instant::now();
    controller.signal("STOP").expect("stopped");
    cluster.make_pairs("pair", PAIRS, PADDING).await;
    tokio::time::sleep(Duration::from_secs(2).saturating_sub(stopped.elapsed())).await;
    controller.signal("CONT").expect("continued");
    cluster.check(PAIRS).await;

    assert_eq!(controller.ended(), None);
    let about =
        |message: &str, kind: &str| lines(&controller, message).iter().filter(|line| line["kind"] == kind).count();
    for kind in KINDS {
        let resumed = about("the watch broke off, and is resumed", kind);
        println!("{kind}: resumed {resumed} times");
        assert_eq!(about("listed", kind), 1, "{kind} was listed again: {}", controller.log());
        // The embedded server waits for a slow reader, since that costs it nothing.
        assert!(resumed > 0 || api_server == ApiServer::Embedded, "{kind}: the watch held, and nothing was shown");
    }
}
