//! The rule set.

use bindery_cache::{Cache, Change};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{LiveReads, Profile, ResyncInterval, RuleSet, Verdict};

use crate::{Config, rules};

/// The rule set of a provisioner.
#[derive(Debug, Clone)]
pub struct Provisioner {
    config: Config,
}

impl Provisioner {
    /// A provisioner with this configuration.
    pub fn new(config: Config) -> Provisioner {
        Provisioner { config }
    }
}

/// The input of a decision.
#[derive(Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub config: &'a Config,
    pub known: &'a Cache,
    pub live_reads: &'a LiveReads,
}

const CLAIMS: (Kind, &str) = (Kind::Claim, "claims");
const VOLUMES: (Kind, &str) = (Kind::Volume, "volumes");
const RECORDS: (Kind, &str) = (Kind::Record, "records");

impl RuleSet for Provisioner {
    fn profile(&self) -> Profile {
        Profile {
            name: "provisioner",
            component: self.config.component,
            resync: ResyncInterval::Rarely,
            watches: match (self.config.provisions, self.config.topology) {
                (false, _) => &[Kind::Volume],
                (true, None) => &[Kind::Claim, Kind::Volume, Kind::Class, Kind::Record],
                (true, Some(_)) => &[Kind::Claim, Kind::Volume, Kind::Class, Kind::Record, Kind::Node, Kind::CsiNode],
            },
            queues: if self.config.provisions { &[CLAIMS, RECORDS, VOLUMES] } else { &[VOLUMES] },
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        let decision = Decision { config: &self.config, known, live_reads };
        match key.kind {
            Kind::Claim => decision.claim(&key.claim_key()),
            Kind::Volume => decision.volume(&key.name),
            Kind::Record => decision.record(&key.name),
            Kind::Class
            | Kind::AttributesClass
            | Kind::Pod
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment => Verdict::idle(&rules::NOT_HANDLED),
        }
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        crate::wakes::wake(&self.config, known, change, wake);
    }
}
