//! `bindery provisioner csi` on a real API server with scripted drivers: 150 recorded states must
//! end as with csi-provisioner, with the same requests to the drivers.
//!
//! `bindery controller` binds. The states are independent, so all run concurrently, in rounds.

mod cluster;
mod crashes;
mod election;
mod end;
mod faults;
mod fixtures;
mod many;
mod migrated;
mod nodes;
mod process;
mod records;
mod server;
#[path = "../servers/mod.rs"]
mod servers;
mod state;
mod wait;

use std::collections::BTreeSet;

use bindery_simulation::oracle::{CSI_DIFFERENCES, Recorded, difference, recorded_csi};
use bindery_test_cluster::TestCluster;
use cluster::Cluster;
use end::{End, PARTS, sort};
use serde_json::Value;

/// The minimum percentage of states whose events have the same reasons.
const REASONS_AGREE_MIN_PERCENT: usize = 95;

/// The maximum number of states with a deliberate difference.
const DIFFERENCES_MAX: usize = 4;

#[test]
fn every_state_ends_as_recorded() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut states = recorded_csi();
    states.iter_mut().for_each(|recorded| sort(&mut recorded.outcomes[0]["calls"]));
    let (ends, cluster) = runtime.block_on(async {
        let mut cluster = Cluster::start(&test_cluster).await;
        let ends = cluster.carry_out(&states).await;
        (ends, cluster)
    });
    let differs = |end: &&End<'_>| PARTS.iter().any(|part| end.end[part] != end.recorded.outcomes[0][part]);
    let (excepted, failed): (Vec<_>, Vec<_>) =
        ends.iter().filter(differs).partition(|end| end.recorded.is_among(CSI_DIFFERENCES));
    println!(
        "{} of {} states end as recorded, {} otherwise on purpose, {} otherwise",
        ends.len() - excepted.len() - failed.len(),
        ends.len(),
        excepted.len(),
        failed.len()
    );
    let same_reasons = ends.iter().filter(|end| has_same_events(end)).count();
    println!("{same_reasons} of {} publish events for the same reasons", ends.len());
    let same_words = ends
        .iter()
        .filter(|end| event_fields(&end.recorded.outcomes[0]["events"], 5) == event_fields(&end.end["events"], 5));
    println!("{} of {} with identical messages", same_words.count(), ends.len());
    let failed: Vec<_> = failed.iter().map(|end| explained(end.recorded, &end.end, &cluster)).collect();
    assert!(failed.is_empty(), "{} states end differently:\n\n{}", failed.len(), failed.join("\n\n"));
    assert!(excepted.len() <= DIFFERENCES_MAX, "too many deliberate differences");
    assert!(same_reasons * 100 >= ends.len() * REASONS_AGREE_MIN_PERCENT, "only {same_reasons} have the same reasons");
}

/// The first `words` fields of each event: kind, name, type, reason, message.
fn event_fields(events: &Value, words: usize) -> BTreeSet<Vec<String>> {
    let word = |word: &Value| word.as_str().unwrap_or_default().to_owned();
    let events = events.as_array().into_iter().flatten().filter_map(Value::as_array);
    events.map(|event| event.iter().take(words).map(word).collect()).collect()
}

/// Whether the events agree in object, type and reason. Prints differences, also of messages.
fn has_same_events(end: &End<'_>) -> bool {
    let (theirs, ours) = (event_fields(&end.recorded.outcomes[0]["events"], 5), event_fields(&end.end["events"], 5));
    if theirs != ours {
        let missing: Vec<_> = theirs.difference(&ours).collect();
        let besides: Vec<_> = ours.difference(&theirs).collect();
        println!("{}: not published: {missing:?}; published besides: {besides:?}", end.recorded.id);
    }
    event_fields(&end.recorded.outcomes[0]["events"], 4) == event_fields(&end.end["events"], 4)
}

/// The difference of an end from the recording, with the provisioners' logs about it.
fn explained(recorded: &Recorded, end: &Value, cluster: &Cluster) -> String {
    let mut lines = vec![recorded.id.clone()];
    for part in PARTS {
        let differences = difference(&recorded.outcomes[0][part], &end[part]);
        lines.extend(differences.into_iter().map(|line| format!("  {part}{line}")));
    }
    lines.push(format!("  state: {}", recorded.state));
    let log = cluster.log();
    let said = log.lines().filter(|line| line.contains(&recorded.id)).take(20);
    lines.extend(said.map(|line| format!("  log: {line}")));
    lines.join("\n")
}
