//! Measures the decision core. Started by `cargo xtask bench core` as a release build.

use std::time::Duration;

use xtask::bench::{choose, drive, large, meter};

/// How often the large cluster is measured.
const ROUNDS: usize = 3;

fn main() {
    println!("Choosing a volume for a claim, whole decisions on one core:");
    let pools = [1_000, 10_000, 100_000];
    let rates: Vec<f64> = pools
        .iter()
        .map(|&volumes| {
            let rate = choose::decisions_per_second(volumes);
            println!("  {volumes:>7} volumes  {rate:>10.0} decisions/s  {:>6.0} ns each", 1e9 / rate);
            rate
        })
        .collect();
    println!("  cost at 100,000 to cost at 1,000: {:.2}", rates[0] / rates[2]);
    println!("Driving an engine through whole binds, answered at once:");
    for pairs in [1_000, 20_000] {
        let drive = drive::drive(pairs);
        println!(
            "  {pairs:>6} pairs  {:>5} ms  {} writes, {} bound, {:.2} µs a write",
            drive.took.as_millis(),
            drive.writes,
            drive.bound,
            drive.took.as_secs_f64() * 1e6 / drive.writes as f64
        );
    }
    println!("One engine with {} claims and as many volumes, calls of the engine task:", large::PAIRS);
    let mut explained = Duration::MAX;
    let bound = meter::best(ROUNDS, || large::bound(&mut explained));
    let selecting = meter::best(ROUNDS, large::selecting);
    for (name, calls) in bound.into_iter().chain(selecting) {
        println!(
            "  {name:<26} {:>7} calls  longest {:>9.3} ms  all {:>9.3} ms",
            calls.count,
            calls.longest.as_secs_f64() * 1e3,
            calls.total.as_secs_f64() * 1e3
        );
    }
    println!("  the explanation took {} ms", explained.as_millis());
}
