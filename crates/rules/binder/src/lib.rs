//! The rules that bind claims to volumes.
//!
//! What kube-controller-manager's PersistentVolume controller does, as pure functions: the claim side ([`claim`], [`named`]), the
//! volume side ([`volume`]), choosing a volume ([`matching`]), the four writes of a bind ([`bind`]), provisioning
//! ([`provision`], [`host_path`]) and reclaiming ([`reclaim`]). All rules are declared in [`rules`].
//!
//! This room does not know a clock, a queue or a client. It is shown what is known and says what is next; it never waits, and it
//! remembers nothing.

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

/// The component that the binder's events name as their source, as upstream.
pub const COMPONENT: &str = "persistentvolume-controller";

/// The binder's rule set.
#[derive(Debug, Clone, Default)]
pub struct Binder {
    config: Config,
}

impl Binder {
    /// Its name among the rule sets.
    pub const NAME: &'static str = "persistentvolume-binder";

    /// A binder with its configuration.
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
            tempo: ResyncInterval::Often,
            sees: &[Kind::Claim, Kind::Volume, Kind::Class, Kind::Pod, Kind::Node],
            // Claims come first: a volume that a claim takes need not be marked Available before.
            queues: &[(Kind::Claim, "claims"), (Kind::Volume, "volumes")],
        }
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
            | Kind::Attachment => Verdict::settle(&rules::NOT_OURS),
        }
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        wakes::wake(known, change, wake);
    }
}
