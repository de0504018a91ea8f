//! Recorded states of the reference, replayed with `bindery controller` on a real API server and on
//! the embedded one: they must end as recorded. So must the reference itself on the embedded
//! server.
//!
//! Nothing else runs, except for states with pods: kube-scheduler, and on the real server
//! kube-controller-manager's garbage collector. See `crates/testing/simulation/tests/oracle` for
//! the same in memory, without pods.

mod controllers;
#[path = "../kube_scheduler/mod.rs"]
mod kube_scheduler;
mod probe;
mod quiet;
mod replay;
mod server;
#[path = "../servers/mod.rs"]
mod servers;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bindery_simulation::oracle::{DIFFERENCES, Recorded, SCHEDULER_DIFFERENCES, recorded, recorded_with_pods};
use controllers::{Controlled, Controllers, Who};
use quiet::Watched;
use replay::{End, Pace, SCHEDULED, WOKEN, carry_out};
use server::Server;
use servers::ApiServer;

/// The maximum number of deliberate differences among the states with one outcome.
const DIFFERENCES_MAX: usize = 7;

/// The minimum percentage of states in which the reference agrees with its recording. It has races,
/// and not every end was recorded.
const REFERENCE_AGREES_MIN_PERCENT: usize = 98;

/// The reference resyncs every two seconds, and repeats its events.
const PATIENT: Pace =
    Pace { watched: Watched::Objects, quiet: Duration::from_secs(5), quiet_last: Duration::from_secs(7) };

/// The minimum percentage of states with the same events.
const EVENTS_AGREE_MIN_PERCENT: usize = 95;

/// Serialises the tests: the end of a state is detected by silence, which a busy machine would
/// fake.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Only ours.
const OURS: Controlled = Controlled { volumes: Who::Ours, scheduler: None, collector: false };

/// Ours for states with pods, with upstream's scheduler and garbage collector.
const OURS_WITH_PODS: Controlled = Controlled { scheduler: Some(Who::Upstreams), collector: true, ..OURS };

/// The same on the embedded server, which collects garbage itself.
const OURS_WITH_PODS_EMBEDDED: Controlled = Controlled { collector: false, ..OURS_WITH_PODS };

/// Ours with our scheduler; only the garbage collector is upstream's.
const OURS_WHOLE: Controlled = Controlled { scheduler: Some(Who::Ours), ..OURS_WITH_PODS };

/// Ours with our scheduler, nothing of upstream's.
const OURS_WHOLE_EMBEDDED: Controlled = Controlled { collector: false, ..OURS_WHOLE };

/// The reference.
const REFERENCE: Controlled = Controlled { volumes: Who::Upstreams, ..OURS };

/// The reference for states with pods.
const REFERENCE_WITH_PODS: Controlled = Controlled { volumes: Who::Upstreams, ..OURS_WITH_PODS };

#[test]
fn every_state_ends_as_recorded() {
    ours_ends_as_recorded(ApiServer::Real, OURS, &recorded(), &WOKEN, DIFFERENCES);
}

#[test]
fn every_state_ends_as_recorded_on_the_embedded_server() {
    ours_ends_as_recorded(ApiServer::Embedded, OURS, &recorded(), &WOKEN, DIFFERENCES);
}

#[test]
fn every_state_with_pods_ends_as_recorded() {
    ours_ends_as_recorded(ApiServer::Real, OURS_WITH_PODS, &recorded_with_pods(), &SCHEDULED, &[]);
}

#[test]
#[ignore = "slow; another test covers the embedded server with our scheduler"]
fn every_state_with_pods_ends_as_recorded_on_the_embedded_server() {
    ours_ends_as_recorded(ApiServer::Embedded, OURS_WITH_PODS_EMBEDDED, &recorded_with_pods(), &SCHEDULED, &[]);
}

#[test]
fn every_state_with_pods_ends_as_recorded_with_our_scheduler() {
    ours_ends_as_recorded(ApiServer::Real, OURS_WHOLE, &recorded_with_pods(), &WOKEN, SCHEDULER_DIFFERENCES);
}

#[test]
fn every_state_with_pods_ends_as_recorded_without_upstream_programs() {
    ours_ends_as_recorded(
        ApiServer::Embedded,
        OURS_WHOLE_EMBEDDED,
        &recorded_with_pods(),
        &WOKEN,
        SCHEDULER_DIFFERENCES,
    );
}

/// The states with a deliberate difference, and the reason.
type Differences = &'static [(&'static str, &'static str)];

fn ours_ends_as_recorded(
    api_server: ApiServer,
    selection: Controlled,
    all: &[Recorded],
    pace: &Pace,
    differences: Differences,
) {
    play(api_server, selection, all, pace, |ends, controllers| {
        let [finds, dropped] = ["bindery_resync_finds", "bindery_events_dropped"].map(|name| controllers.count(name));
        let failures = disagreeing(ends, &controllers.log(), differences);
        let agreeing = count_events(ends);
        assert!(failures.is_empty(), "{} states end differently:\n\n{}", failures.len(), failures.join("\n\n"));
        assert!(agreeing * 100 >= ends.len() * EVENTS_AGREE_MIN_PERCENT, "only {agreeing} publish the same events");
        assert_eq!(finds, 0, "a resync must find nothing to do: every relevant change wakes its object");
        assert_eq!(dropped, 0, "no event is dropped");
    });
}

#[test]
fn the_reference_ends_as_recorded_on_the_embedded_server() {
    reference_ends_as_recorded(ApiServer::Embedded, REFERENCE, &recorded());
}

#[test]
#[ignore = "runs nothing of ours: to check changes of the replay"]
fn the_reference_ends_as_recorded() {
    reference_ends_as_recorded(ApiServer::Real, REFERENCE_WITH_PODS, &recorded_with_pods());
}

fn reference_ends_as_recorded(api_server: ApiServer, selection: Controlled, all: &[Recorded]) {
    play(api_server, selection, all, &PATIENT, |ends, _| {
        let others: Vec<_> = ends.iter().filter(|end| end.recorded.outcome_of(&end.objects).is_none()).collect();
        let agreeing = ends.len() - others.len();
        println!("{agreeing} of {} states end as recorded", ends.len());
        count_events(ends);
        let explained: Vec<_> = others.iter().map(|end| end.recorded.explain(&end.objects)).collect();
        let is_enough = agreeing * 100 >= ends.len() * REFERENCE_AGREES_MIN_PERCENT;
        assert!(is_enough, "only {agreeing} end as recorded:\n\n{}", explained.join("\n\n"));
    });
}

/// Replays all states on an API server, and passes the ends on while the controllers still run.
fn play(
    api_server: ApiServer,
    selection: Controlled,
    all: &[Recorded],
    pace: &Pace,
    look: impl FnOnce(&[End<'_>], &Controllers),
) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(test_cluster) = api_server.start() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (ends, controllers) = runtime.block_on(async {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        carry_out(&server, all, pace, || Controllers::start(selection, &test_cluster)).await
    });
    look(&ends, &controllers);
}

/// The states that end differently without being listed, each with our controller's log about it.
fn disagreeing(ends: &[End<'_>], log: &str, differences: Differences) -> Vec<String> {
    let mut failures = Vec::new();
    let explain = |end: &End<'_>| {
        let said = log.lines().filter(|line| line.contains(&end.recorded.id));
        let said = said.map(|line| format!("\n  log: {line}"));
        said.fold(end.recorded.explain(&end.objects), |text, line| text + &line)
    };
    for (is_race, words) in [(false, "one outcome"), (true, "several outcomes")] {
        let of_kind = || ends.iter().filter(|end| (end.recorded.outcomes.len() > 1) == is_race);
        let (agreeing, others): (Vec<_>, Vec<_>) =
            of_kind().partition(|end| end.recorded.outcome_of(&end.objects).is_some());
        let (excepted, failed): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|end| end.recorded.is_among(differences));
        println!(
            "{} of {} states with {words} end as recorded, {} otherwise on purpose, {} otherwise",
            agreeing.len(),
            of_kind().count(),
            excepted.len(),
            failed.len()
        );
        failures.extend(failed.into_iter().map(explain));
        assert!(is_race || excepted.len() <= DIFFERENCES_MAX, "too many deliberate differences");
    }
    failures
}

/// The number of states with the events of the reference.
fn count_events(ends: &[End<'_>]) -> usize {
    let differences: Vec<_> =
        ends.iter().filter_map(|end| end.recorded.explain_events(&end.objects, &end.events)).collect();
    for difference in &differences {
        println!("{difference}");
    }
    let agreeing = ends.len() - differences.len();
    println!("{agreeing} of {} states publish the same events", ends.len());
    agreeing
}
