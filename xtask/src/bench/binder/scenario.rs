//! The scenarios in which binders are measured.

use std::time::Duration;

use clap::ValueEnum;

use super::contender::Contender;

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Pairs exist, then the binder starts.
    Cold,
    /// The binder runs, as many volumes are Available, then claims are created all at once.
    Burst,
    /// The same, with every request delayed by 10 ms.
    Slow,
    /// Like burst, with five times as many volumes as claims.
    Pool,
    /// The controllers run, volumes are Available, then pods with an ephemeral volume each are
    /// created all at once.
    Ephemeral,
    /// The cost of a claim in a pool of 1,000 and in one of 20,000 volumes.
    Flat,
    /// The memory of a binder that starts on 10,000 bound pairs.
    Mem,
}

/// The setup of a scenario.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name in tables.
    pub name: String,
    /// The number of volumes.
    pub volumes: usize,
    /// The number of claims.
    pub claims: usize,
    /// Whether the claims exist before the binder starts.
    pub is_cold: bool,
    /// The delay of requests.
    pub delay: Option<Duration>,
    /// Whether the claims belong to pods' ephemeral volumes.
    pub by_pods: bool,
}

/// The number of claims in a pool of varying size: enough to measure, few for the smallest pool.
const FLAT_CLAIMS: usize = 500;
const FLAT_POOLS: [usize; 2] = [1_000, 20_000];

impl Scenario {
    /// What is bound in it; empty if the scenario measures something else.
    pub fn setups(self, pairs: usize, pods: usize) -> Vec<Setup> {
        let setup = |name: String, volumes, claims| Setup {
            name,
            volumes,
            claims,
            is_cold: false,
            delay: None,
            by_pods: false,
        };
        match self {
            Self::Cold => vec![Setup { is_cold: true, ..setup(format!("cold, {pairs} pairs"), pairs, pairs) }],
            Self::Burst => vec![setup(format!("burst, {pairs} claims"), pairs, pairs)],
            Self::Slow => {
                let delay = Some(Duration::from_millis(10));
                vec![Setup { delay, ..setup(format!("burst at 10 ms, {pairs} claims"), pairs, pairs) }]
            }
            Self::Pool => {
                let volumes = 5 * pairs;
                vec![setup(format!("pool, {pairs} claims in {volumes} volumes"), volumes, pairs)]
            }
            Self::Ephemeral => {
                vec![Setup { by_pods: true, ..setup(format!("ephemeral, {pods} pods"), pods, pods) }]
            }
            Self::Flat => FLAT_POOLS
                .map(|volumes| setup(format!("flat, {FLAT_CLAIMS} claims in {volumes} volumes"), volumes, FLAT_CLAIMS))
                .into(),
            Self::Mem => Vec::new(),
        }
    }

    /// Whether the binder takes part in it.
    pub fn is_for(self, contender: Contender) -> bool {
        match (self, contender) {
            (_, Contender::Bindery) => true,
            // It compares the costs of one binder; the others would take minutes.
            (Self::Flat, Contender::Upstream | Contender::Baseline) => false,
            // The baseline creates no claims.
            (Self::Ephemeral, Contender::Baseline) => false,
            (
                Self::Cold | Self::Burst | Self::Slow | Self::Pool | Self::Ephemeral | Self::Mem,
                Contender::Upstream | Contender::Baseline,
            ) => true,
        }
    }
}
