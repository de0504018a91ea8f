//! What happens to a binder while it is measured.

use std::time::Duration;

use clap::ValueEnum;

use super::contender::Contender;

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Pairs stand, and the binder starts.
    Cold,
    /// The binder runs, as many volumes are Available, and claims are made all at once.
    Burst,
    /// The same, and every request arrives 10 ms later.
    Slow,
    /// Like burst, with five times as many volumes as claims.
    Pool,
    /// The controllers run, volumes are Available, and pods with an ephemeral volume each are made all at once.
    Ephemeral,
    /// What a claim costs in a pool of 1,000 volumes, and in one of 20,000.
    Flat,
    /// Memory of a binder that starts on 10,000 bound pairs.
    Mem,
}

/// How a scenario is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name in tables.
    pub name: String,
    /// How many volumes there are.
    pub volumes: usize,
    /// How many claims.
    pub claims: usize,
    /// Whether the binder starts on them, instead of being there before the claims.
    pub is_cold: bool,
    /// How much later requests arrive.
    pub delay: Option<Duration>,
    /// Whether the claims are those of pods' ephemeral volumes.
    pub by_pods: bool,
}

/// Claims in a pool whose size is varied: enough to measure, few for the smallest pool.
const FLAT_CLAIMS: usize = 500;
const FLAT_POOLS: [usize; 2] = [1_000, 20_000];

impl Scenario {
    /// All that is bound in it, or nothing where binding is not what is measured.
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

    /// Whether somebody is measured in it.
    pub fn is_for(self, contender: Contender) -> bool {
        match (self, contender) {
            (_, Contender::Bindery) => true,
            // What matters is its own cost in one pool and in another, and others would take minutes.
            (Self::Flat, Contender::Upstream | Contender::Limit) => false,
            // Who decides nothing makes no claims.
            (Self::Ephemeral, Contender::Limit) => false,
            (
                Self::Cold | Self::Burst | Self::Slow | Self::Pool | Self::Ephemeral | Self::Mem,
                Contender::Upstream | Contender::Limit,
            ) => true,
        }
    }
}
