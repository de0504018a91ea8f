//! The rule set: what it is, and to whom it hands a key.

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
    /// A provisioner that is set up so.
    pub fn new(config: Config) -> Provisioner {
        Provisioner { config }
    }
}

/// All that a decision looks at.
#[derive(Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub config: &'a Config,
    pub known: &'a Cache,
    pub live_reads: &'a LiveReads,
}

const CLAIMS: (Kind, &str) = (Kind::Claim, "claims");
const VOLUMES: (Kind, &str) = (Kind::Volume, "volumes");

impl RuleSet for Provisioner {
    fn profile(&self) -> Profile {
        Profile {
            name: "provisioner",
            component: self.config.component,
            tempo: ResyncInterval::Rarely,
            sees: match (self.config.makes_volumes, self.config.topology) {
                (false, _) => &[Kind::Volume],
                (true, None) => &[Kind::Claim, Kind::Volume, Kind::Class],
                (true, Some(_)) => &[Kind::Claim, Kind::Volume, Kind::Class, Kind::Node, Kind::CsiNode],
            },
            queues: if self.config.makes_volumes { &[CLAIMS, VOLUMES] } else { &[VOLUMES] },
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
        crate::wakes::wake(&self.config, known, change, wake);
    }
}
