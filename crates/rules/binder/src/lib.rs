//! The rules that bind claims to volumes.
//!
//! The PersistentVolume controller of kube-controller-manager as pure functions: claims (`claim`,
//! `named`), volumes (`volume`), matching ([`matching`]), the four writes of a bind (`bind`),
//! provisioning (`provision`, `host_path`) and reclaiming (`reclaim`). All rules are declared
//! in [`rules`].
//!
//! The rules use no clock, queue or client, and keep no state: they receive the cache and return
//! the next step.

mod bind;
mod claim;
mod config;
mod decision;
mod host_path;
pub mod matching;
mod migration;
mod named;
mod plugins;
mod provision;
mod reclaim;
mod recycler;
pub mod rules;
mod status;
mod volume;
mod wakes;

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_matching::INDEX_POLICY;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{LiveReads, Profile, ResyncInterval, RuleSet, Verdict};

pub use config::{Config, RecyclerConfig};
use decision::Decision;

/// The source component of the binder's events, as upstream.
pub const COMPONENT: &str = "persistentvolume-controller";

/// The binder's rule set.
#[derive(Debug, Clone, Default)]
pub struct Binder {
    config: Config,
}

impl Binder {
    /// The rule set's name.
    pub const NAME: &'static str = "persistentvolume-binder";

    /// A binder with this configuration.
    pub fn new(config: Config) -> Binder {
        Binder { config }
    }
}

impl RuleSet for Binder {
    fn index_policy(&self) -> Option<IndexPolicy> {
        Some(INDEX_POLICY)
    }

    fn profile(&self) -> Profile {
        Profile {
            name: Binder::NAME,
            component: COMPONENT,
            resync: ResyncInterval::Often,
            watches: &[Kind::Claim, Kind::Volume, Kind::Class, Kind::Pod, Kind::Node],
            // Claims first: a volume that a claim takes need not be marked Available before.
            queues: &[(Kind::Claim, "claims"), (Kind::Volume, "volumes")],
        }
    }

    fn hands_off(&self) -> bool {
        true
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        let decision = Decision { config: &self.config, known, live_reads };
        match key.kind {
            Kind::Claim => decision.claim(&key.claim_key()),
            Kind::Volume => decision.volume(&key.name),
            Kind::Class
            | Kind::AttributesClass
            | Kind::Pod
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment
            | Kind::Record => Verdict::idle(&rules::NOT_HANDLED),
        }
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        wakes::wake(known, change, wake);
    }
}
