//! Recorded states of the reference controller, carried out by `bindery controller` on a real API server: they must end where the
//! reference was seen to end.
//!
//! Beside it run the controllers that protect and expand, which are kube-controller-manager's. See `crates/sim/tests/oracle` for
//! the same in memory.

mod replay;
mod server;

use bindery_lab::{Lab, Running};
use bindery_sim::oracle::{DEVIATIONS, recorded};
use replay::{End, carry_out};
use server::Server;

/// So many of the states with one outcome may end otherwise on purpose.
const DEVIATIONS_MAX: usize = 6;

/// So many in a hundred states must publish the same events.
const EVENTS_AGREE_MIN_PERCENT: usize = 95;

#[test]
fn every_state_ends_as_the_reference_was_seen_to_end() {
    let Some(lab) = Lab::for_test() else { return };
    let all = recorded();
    assert_eq!(all.len(), 600);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ends = runtime.block_on(async {
        let server = Server::connect(lab.kubeconfig()).await;
        carry_out(&server, &all, || [others(&lab), ours(&lab)]).await
    });
    let failures = disagreeing(&ends);
    let agreeing = count_events(&ends);
    assert!(failures.is_empty(), "{} states end otherwise:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(agreeing * 100 >= ends.len() * EVENTS_AGREE_MIN_PERCENT, "only {agreeing} publish the same events");
}

/// The binary, with what it says.
fn ours(lab: &Lab) -> Running {
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
    let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// The controllers beside it.
fn others(lab: &Lab) -> Running {
    const CONTROLLERS: &str = "--controllers=persistentvolumeclaim-protection-controller,\
                               persistentvolume-protection-controller,persistentvolume-expander-controller";
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
    let args = [
        &kubeconfig,
        CONTROLLERS,
        "--leader-elect=false",
        "--kube-api-qps=10000",
        "--kube-api-burst=10000",
        "--secure-port=0",
    ];
    lab.start_program("kube-controller-manager", args).expect("kube-controller-manager starts")
}

/// The states that end otherwise and are no exceptions, to read.
fn disagreeing(ends: &[End<'_>]) -> Vec<String> {
    let mut failures = Vec::new();
    for (is_race, words) in [(false, "one outcome"), (true, "several outcomes")] {
        let of_kind = || ends.iter().filter(|end| (end.recorded.outcomes.len() > 1) == is_race);
        let (agreeing, others): (Vec<_>, Vec<_>) =
            of_kind().partition(|end| end.recorded.outcome_of(&end.objects).is_some());
        let (excepted, failed): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|end| end.recorded.is_among(DEVIATIONS));
        println!(
            "{} of {} states with {words} end as recorded, {} otherwise on purpose, {} otherwise",
            agreeing.len(),
            of_kind().count(),
            excepted.len(),
            failed.len()
        );
        failures.extend(failed.into_iter().map(|end| end.recorded.explain(&end.objects)));
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
