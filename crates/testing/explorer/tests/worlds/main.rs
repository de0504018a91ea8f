//! All interleavings of small worlds keep the promises.

mod binding;
mod mutants;
mod protection;
mod provisioning;
mod reclaiming;

use std::sync::Arc;

use bindery_explorer::{Counterexample, Explored, Faults, Rules, Scenario, World, explore};
use bindery_model::{ClaimKey, ObjectKey};
use bindery_rules_api::RuleSet;

/// Above the largest world. A world with more states needs tighter bounds.
const STATES_MAX: usize = 400_000;

/// The same rule set for every instance.
fn rules<R: RuleSet + Send + 'static>(rule_set: impl Fn() -> R + Send + Sync + 'static) -> Rules {
    Arc::new(move |_| vec![Box::new(rule_set()) as Box<dyn RuleSet + Send>])
}

fn claim(name: &str) -> ObjectKey {
    ClaimKey { namespace: "default".into(), name: name.into() }.into()
}

/// Two equal instances, without users and faults.
fn two(rules: Rules, objects: &'static str) -> Scenario {
    Scenario {
        objects,
        instances: vec![rules.clone(), rules],
        lag: 2,
        is_symmetric: true,
        users: Vec::new(),
        faults: Faults::default(),
        ends: Vec::new(),
        ignores_versions: false,
    }
}

fn run(scenario: Scenario) -> Result<Explored, Box<Counterexample>> {
    explore(&World::start(scenario), STATES_MAX)
}

/// Explores a world in which all promises must hold.
fn check(name: &str, scenario: Scenario) {
    let started = std::time::Instant::now();
    match run(scenario) {
        Ok(Explored { states, steps, ends, depth }) => {
            let took = started.elapsed().as_secs_f64();
            println!("{name}: {states} states, {steps} steps, {ends} ends, depth {depth}, {took:.1} s");
        }
        Err(counterexample) => panic!("{name}: {counterexample}"),
    }
}
