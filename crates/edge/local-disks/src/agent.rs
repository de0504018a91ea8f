//! The agent on a node: periodic discovery, and cleaning of released volumes.
//!
//! Discovery and cleaning lock a disk while they work on it, so that no process creates a volume
//! for a disk that is being cleaned. After taking the lock, the state is read again.

mod cleanings;
mod discovery;
mod disks;
mod node;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindery_model::{Kind, Name, ObjectKey, Volume, VolumeMode};
use bindery_provisioner_sdk::Config as ProvisionerConfig;
use bindery_rules_api::Rule;
use bindery_runtime::{EngineQuery, Message};
use tokio::sync::mpsc::UnboundedSender;

use crate::discover::Owner;

pub use cleanings::{CleaningState, Cleanings};
pub use discovery::Discovery;
pub use disks::LocalDisks;
pub use node::{read_node, remove_taint};

/// Observes the agent, for metrics.
pub trait DiskObserver: Send + Sync + 'static {
    /// A volume was created; `took` is the time since its disk was scanned.
    fn discovered(&self, mode: VolumeMode, took: Duration);
    /// A request to create a volume has finished.
    fn create_finished(&self, took: Duration, succeeded: bool);
    /// A round of discovery has finished, with these problems of single disks.
    fn scanned(&self, problems: &[DiskProblem]);
    /// Cleaning a disk has finished.
    fn cleaned(&self, cleaned: &Cleaned);
}

/// The problems that a round of discovery has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// Those of a whole class or of the provisioner.
    pub general: Vec<String>,
    /// Those of single disks. All other disks are published.
    pub disks: Vec<DiskProblem>,
}

/// Why a disk gets no volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskProblem {
    /// The class.
    pub class: String,
    /// The rule that applies.
    pub rule: &'static Rule,
    /// Details.
    pub note: String,
}

impl fmt::Display for DiskProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {:?}: {} [{}]", self.class, self.note, self.rule)
    }
}

/// A finished cleaning.
#[derive(Debug, Clone)]
pub struct Cleaned {
    /// The volume mode.
    pub mode: VolumeMode,
    /// The volume's capacity.
    pub bytes: i128,
    /// The cleaner command; empty for directories.
    pub command: String,
    /// How long it took.
    pub took: Duration,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// Lists the volumes in the engine's cache.
#[derive(Clone, Default)]
pub struct EngineVolumes(Arc<OnceLock<UnboundedSender<Message>>>);

impl EngineVolumes {
    /// Sets the channel to the engine.
    pub fn connect(&self, outbox: UnboundedSender<Message>) {
        // A second call would set the same channel.
        let _ = self.0.set(outbox);
    }

    /// All volumes; `None` until the cache is synced.
    pub async fn list(&self) -> Option<Vec<Arc<Volume>>> {
        let (ask, answer) = EngineQuery::new(|engine| {
            let known = engine.known();
            let volume = |key: &ObjectKey| known.volume(&key.name).cloned();
            engine.is_synced().then(|| known.keys(Kind::Volume).iter().filter_map(volume).collect())
        });
        self.0.get()?.send(Message::Query(ask)).ok()?;
        answer.await.ok()?
    }
}

/// The provisioner's configuration: it reclaims volumes but creates none.
pub fn provisioner_config(owner: &Owner, also: Vec<Name>) -> ProvisionerConfig {
    ProvisionerConfig {
        aliases: also,
        provisions: false,
        adds_finalizer: false,
        ..ProvisionerConfig::new(owner.provisioner.clone())
    }
}
