//! The measurements as Markdown tables.

use std::fmt::Write as _;

use super::contender::Contender;
use super::process::Memory;
use super::run::{MEMORY_PAIRS, Measured};

/// A table of binds, with ratios to upstream and to the baseline in the same scenario.
pub fn binds(all: &[Measured]) -> String {
    let mut table = String::from(
        "| scenario | binder | seconds | binds/s | to upstream | to baseline | CPU ms per bind | writes per pair (rejected) | RSS MiB (peak) | left Pending |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let ratio_to = |contender| {
            let other = all.iter().find(|other| other.scenario == one.scenario && other.contender == contender);
            other.map_or("–".to_owned(), |other| format!("{:.2}", one.per_second / other.per_second))
        };
        let _ = writeln!(
            table,
            "| {} | {} | {:.2} | {:.0} | {} | {} | {:.2} | {:.2} ({:.2}) | {:.0} ({:.0}) | {} |",
            one.scenario,
            one.contender.name(),
            one.seconds,
            one.per_second,
            ratio_to(Contender::Upstream),
            ratio_to(Contender::Baseline),
            one.cpu_ms,
            one.writes.done,
            one.writes.refused,
            one.memory.now,
            one.memory.peak,
            one.claims - one.bound,
        );
    }
    table
}

/// A table of claims and events created for pods.
pub fn made(all: &[Measured]) -> String {
    let mut table = String::from(
        "| scenario | controllers | claims for pods | events | most about one object |\n|---|---|---|---|---|\n",
    );
    for one in all {
        let Some(made) = one.made else { continue };
        let _ = writeln!(
            table,
            "| {} | {} | {} for {} | {} | {} |",
            one.scenario,
            one.contender.name(),
            made.claims,
            one.claims,
            made.events,
            made.events_max
        );
    }
    table
}

/// A table of memory, with ratios to upstream.
pub fn memory(all: &[(Contender, Memory)]) -> String {
    let upstream = all.iter().find(|(contender, _)| *contender == Contender::Upstream);
    let mut table = format!(
        "| started on {MEMORY_PAIRS} bound pairs | RSS MiB | peak MiB | RSS to upstream |\n|---|---|---|---|\n"
    );
    for (contender, memory) in all {
        let ratio = upstream.map_or("–".to_owned(), |(_, upstream)| format!("{:.2}", memory.now / upstream.now));
        let _ = writeln!(table, "| {} | {:.1} | {:.1} | {ratio} |", contender.name(), memory.now, memory.peak);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::binder::cluster::Writes;

    #[test]
    fn ratios_compare_the_same_scenario() {
        let one = |scenario: &str, contender, per_second| Measured {
            scenario: scenario.to_owned(),
            contender,
            claims: 10,
            bound: 9,
            seconds: 1.5,
            per_second,
            cpu_ms: 0.5,
            writes: Writes { done: 4.0, refused: 0.0 },
            memory: Memory { now: 10.0, peak: 12.0 },
            made: None,
        };
        let all = [
            one("cold", Contender::Bindery, 200.0),
            one("cold", Contender::Upstream, 50.0),
            one("burst", Contender::Baseline, 1.0),
        ];
        let row = binds(&all).lines().nth(2).map(str::to_owned);
        let expected = "| cold | bindery | 1.50 | 200 | 4.00 | – | 0.50 | 4.00 (0.00) | 10 (12) | 1 |";
        assert_eq!(row.as_deref(), Some(expected));
    }
}
