//! Recorded states of the reference, carried out by `bindery controller` on a real API server and on the embedded one: they must
//! end where the reference was seen to end. And so must they by the reference itself, on the embedded one.
//!
//! Nothing else runs; where pods are about, kube-scheduler does, and on the real server kube-controller-manager's garbage
//! collector. See `crates/testing/simulation/tests/oracle` for the same in memory, without pods.

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
use controllers::{Cast, Controllers, Who};
use quiet::Watched;
use replay::{End, Pace, SCHEDULED, WOKEN, carry_out};
use server::Server;
use servers::ApiServer;

/// So many of the states with one outcome may end otherwise on purpose.
const DEVIATIONS_MAX: usize = 6;

/// So many in a hundred states must the reference bring to the same end again. It races with itself, and not every end was seen.
const REFERENCE_AGREES_MIN_PERCENT: usize = 98;

/// The reference looks at everything every other second, and tells again and again what it sees.
const PATIENT: Pace =
    Pace { watched: Watched::Objects, quiet: Duration::from_secs(5), quiet_last: Duration::from_secs(7) };

/// So many in a hundred states must publish the same events.
const EVENTS_AGREE_MIN_PERCENT: usize = 95;

/// That nobody writes any more is seen by nobody writing for a while: a machine that is busy with another test would lie.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Ours alone.
const OURS: Cast = Cast { volumes: Who::Ours, scheduler: None, collector: false };

/// Ours where pods are about: the scheduler and the garbage collector are upstream's.
const OURS_WITH_PODS: Cast = Cast { scheduler: Some(Who::Upstreams), collector: true, ..OURS };

/// The same on the embedded server, which collects garbage itself.
const OURS_WITH_PODS_EMBEDDED: Cast = Cast { collector: false, ..OURS_WITH_PODS };

/// Nothing of upstream's but the garbage collector.
const OURS_WHOLE: Cast = Cast { scheduler: Some(Who::Ours), ..OURS_WITH_PODS };

/// Nothing of upstream's at all.
const OURS_WHOLE_EMBEDDED: Cast = Cast { collector: false, ..OURS_WHOLE };

/// The reference.
const REFERENCE: Cast = Cast { volumes: Who::Upstreams, ..OURS };

/// The reference where pods are about.
const REFERENCE_WITH_PODS: Cast = Cast { volumes: Who::Upstreams, ..OURS_WITH_PODS };

#[test]
fn every_state_ends_as_the_reference_was_seen_to_end() {
    ours_ends_as_recorded(ApiServer::Real, OURS, &recorded(), &WOKEN, DIFFERENCES);
}

#[test]
fn and_so_does_every_state_on_the_embedded_server() {
    ours_ends_as_recorded(ApiServer::Embedded, OURS, &recorded(), &WOKEN, DIFFERENCES);
}

#[test]
fn every_state_with_pods_ends_as_the_reference_was_seen_to_end() {
    ours_ends_as_recorded(ApiServer::Real, OURS_WITH_PODS, &recorded_with_pods(), &SCHEDULED, &[]);
}

#[test]
#[ignore = "takes its time; our own scheduler plays on the embedded server in another test"]
fn and_so_does_every_state_with_pods_on_the_embedded_server() {
    ours_ends_as_recorded(ApiServer::Embedded, OURS_WITH_PODS_EMBEDDED, &recorded_with_pods(), &SCHEDULED, &[]);
}

#[test]
fn our_scheduler_takes_every_state_with_pods_to_the_same_end() {
    ours_ends_as_recorded(ApiServer::Real, OURS_WHOLE, &recorded_with_pods(), &WOKEN, SCHEDULER_DIFFERENCES);
}

#[test]
fn and_so_it_does_where_nothing_is_upstreams() {
    ours_ends_as_recorded(
        ApiServer::Embedded,
        OURS_WHOLE_EMBEDDED,
        &recorded_with_pods(),
        &WOKEN,
        SCHEDULER_DIFFERENCES,
    );
}

/// States that end otherwise on purpose, and why.
type Deviations = &'static [(&'static str, &'static str)];

fn ours_ends_as_recorded(api_server: ApiServer, cast: Cast, all: &[Recorded], pace: &Pace, deviations: Deviations) {
    play(api_server, cast, all, pace, |ends, controllers| {
        let [finds, dropped] = ["bindery_resync_finds", "bindery_events_dropped"].map(|name| controllers.count(name));
        let failures = disagreeing(ends, &controllers.log(), deviations);
        let agreeing = count_events(ends);
        assert!(failures.is_empty(), "{} states end otherwise:\n\n{}", failures.len(), failures.join("\n\n"));
        assert!(agreeing * 100 >= ends.len() * EVENTS_AGREE_MIN_PERCENT, "only {agreeing} publish the same events");
        assert_eq!(finds, 0, "what concerns a claim or a volume wakes it: a resync finds nothing to do");
        assert_eq!(dropped, 0, "no event is dropped");
    });
}

#[test]
fn the_reference_itself_takes_the_embedded_server_for_a_cluster() {
    reference_ends_as_recorded(ApiServer::Embedded, REFERENCE, &recorded());
}

#[test]
#[ignore = "nothing of ours runs: for whoever changes how states are carried out"]
fn the_reference_itself_ends_as_it_was_seen_to_end() {
    reference_ends_as_recorded(ApiServer::Real, REFERENCE_WITH_PODS, &recorded_with_pods());
}

fn reference_ends_as_recorded(api_server: ApiServer, cast: Cast, all: &[Recorded]) {
    play(api_server, cast, all, &PATIENT, |ends, _| {
        let others: Vec<_> = ends.iter().filter(|end| end.recorded.outcome_of(&end.objects).is_none()).collect();
        let agreeing = ends.len() - others.len();
        println!("{agreeing} of {} states end as recorded", ends.len());
        count_events(ends);
        let explained: Vec<_> = others.iter().map(|end| end.recorded.explain(&end.objects)).collect();
        let is_enough = agreeing * 100 >= ends.len() * REFERENCE_AGREES_MIN_PERCENT;
        assert!(is_enough, "only {agreeing} end as recorded:\n\n{}", explained.join("\n\n"));
    });
}

/// Carries out all states on an API server, if there can be one, and looks at the ends while the controllers still run.
fn play(api_server: ApiServer, cast: Cast, all: &[Recorded], pace: &Pace, look: impl FnOnce(&[End<'_>], &Controllers)) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(lab) = api_server.start() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (ends, controllers) = runtime.block_on(async {
        let server = Server::connect(lab.kubeconfig()).await;
        carry_out(&server, all, pace, || Controllers::start(cast, &lab)).await
    });
    look(&ends, &controllers);
}

/// The states that end otherwise and are no exceptions, to read, each with what our controller said about it.
fn disagreeing(ends: &[End<'_>], log: &str, deviations: Deviations) -> Vec<String> {
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
            others.into_iter().partition(|end| end.recorded.is_among(deviations));
        println!(
            "{} of {} states with {words} end as recorded, {} otherwise on purpose, {} otherwise",
            agreeing.len(),
            of_kind().count(),
            excepted.len(),
            failed.len()
        );
        failures.extend(failed.into_iter().map(explain));
        assert!(is_race || excepted.len() <= DEVIATIONS_MAX, "too many states with one outcome are exceptions");
    }
    failures
}

/// How many states publish the events of the reference.
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
