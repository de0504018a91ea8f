//! States recorded with the upstream controllers, replayed without processes and clocks, in a
//! simulated cluster and on the core of the embedded API server. Ours must end in a recorded
//! outcome.

/// Runs a generic test in both clusters.
macro_rules! in_each_cluster {
    ($test:ident) => {
        mod $test {
            #[test]
            fn in_simulated_cluster() {
                super::$test::<bindery_simulation::SimulatedCluster>();
            }

            #[test]
            fn in_embedded_api_server() {
                super::$test::<crate::served::Served>();
            }
        }
    };
}

mod served;
mod state;

use std::collections::BTreeMap;

use bindery_simulation::oracle::{DIFFERENCES, Recorded, recorded};
use bindery_simulation::user_api::UserApi;
use state::{End, Way, carry_out};

/// States with another outcome if the engine is restarted in between: the id, and the reason.
const RESTART_DIFFERENCES: &[(&str, &str)] =
    &[("s01239", "two volumes become Available, and after the restart only the larger one is: it is chosen")];

/// The minimum percentage of states that publish the same events.
const EVENTS_AGREE_MIN_PERCENT: usize = 95;

/// How a final state differs from every outcome, with the history.
fn explain<W: UserApi>(recorded: &Recorded, way: Way, end: &End<W>) -> String {
    let writes: Vec<&str> =
        end.cluster.history().iter().map(String::as_str).filter(|words| !words.starts_with("read")).collect();
    format!("{way:?}: {}\n  history: {}", recorded.explain(&end.objects), writes.join("; "))
}

fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{} states have another outcome:\n\n{}", failures.len(), failures.join("\n\n"));
}

in_each_cluster!(every_state_ends_in_a_recorded_outcome);

fn every_state_ends_in_a_recorded_outcome<W: UserApi>() {
    let all = recorded();
    assert_eq!(all.len(), 600);
    let mut failures = Vec::new();
    let mut agreed: BTreeMap<bool, [usize; 2]> = BTreeMap::new();
    for recorded in &all {
        let end = carry_out::<W>(recorded, Way::Straight);
        let agrees = recorded.outcome_of(&end.objects).is_some();
        let [agreeing, total] = agreed.entry(recorded.outcomes.len() > 1).or_default();
        *agreeing += usize::from(agrees);
        *total += 1;
        let is_excepted = recorded.is_among(DIFFERENCES);
        if agrees && is_excepted {
            failures.push(format!("{} ends as recorded: remove it from the differences", recorded.id));
        }
        if !agrees && !is_excepted {
            failures.push(explain(recorded, Way::Straight, &end));
        }
    }
    for (is_race, [agreeing, total]) in agreed {
        println!(
            "{agreeing} of {total} states with {} end as recorded",
            if is_race { "several outcomes" } else { "one" }
        );
    }
    assert_none(&failures);
}

in_each_cluster!(nearly_all_states_publish_the_recorded_events);

fn nearly_all_states_publish_the_recorded_events<W: UserApi>() {
    let all = recorded();
    let mut agreeing = 0;
    for recorded in &all {
        let end = carry_out::<W>(recorded, Way::Straight);
        match recorded.explain_events(&end.objects, &end.events()) {
            None => agreeing += 1,
            Some(difference) => println!("{difference}"),
        }
    }
    println!("{agreeing} of {} states publish the same events", all.len());
    assert!(agreeing * 100 >= all.len() * EVENTS_AGREE_MIN_PERCENT);
}

in_each_cluster!(new_engines_around_every_action_do_not_change_the_outcome);

fn new_engines_around_every_action_do_not_change_the_outcome<W: UserApi>() {
    let mut failures = Vec::new();
    for recorded in recorded().iter().filter(|recorded| !recorded.is_among(DIFFERENCES)) {
        let end = carry_out::<W>(recorded, Way::NewEngineEachTime);
        if recorded.outcome_of(&end.objects).is_none() {
            failures.push(explain(recorded, Way::NewEngineEachTime, &end));
        }
    }
    assert_none(&failures);
}

in_each_cluster!(restart_after_any_effect_does_not_change_the_outcome);

fn restart_after_any_effect_does_not_change_the_outcome<W: UserApi>() {
    let mut failures = Vec::new();
    for recorded in recorded().iter().filter(|recorded| !recorded.is_among(DIFFERENCES)) {
        let effects = carry_out::<W>(recorded, Way::Straight).cluster.effects();
        for after in 1..=effects {
            let way = Way::RestartAfter(after);
            let end = carry_out::<W>(recorded, way);
            if recorded.outcome_of(&end.objects).is_none() && !recorded.is_among(RESTART_DIFFERENCES) {
                failures.push(explain(recorded, way, &end));
            }
        }
    }
    assert_none(&failures);
}
