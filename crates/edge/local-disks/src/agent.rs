//! What runs on a node: rounds of discovery, and the storage behind released volumes, on the engine.
//!
//! Whoever offers a disk and whoever cleans it hold it meanwhile, so that a disk is not offered while it is cleaned, by whichever
//! process; and whoever has come to hold one looks again, live, before it does anything.

mod cleanings;
mod disks;
mod node;
mod rounds;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindery_model::{Kind, Name, ObjectKey, Volume, VolumeMode};
use bindery_provisioner_sdk::Config as ProvisionerConfig;
use bindery_runtime::{EngineQuery, Message};
use tokio::sync::mpsc::UnboundedSender;

use crate::discover::Owner;

pub use cleanings::{Cleanings, State};
pub use disks::LocalDisks;
pub use node::{read_node, remove_taint};
pub use rounds::Rounds;

/// Hears what is done, to count it.
pub trait Hears: Send + Sync + 'static {
    /// A volume was offered, so long after its disk was looked at.
    fn offered(&self, mode: VolumeMode, took: Duration);
    /// A volume's creation was asked for, and answered.
    fn created(&self, took: Duration, succeeded: bool);
    /// A disk was cleaned, or could not be.
    fn cleaned(&self, cleaned: &Cleaned);
}

/// A cleaning that is over.
#[derive(Debug, Clone)]
pub struct Cleaned {
    /// What was on the disk.
    pub mode: VolumeMode,
    /// How much it holds.
    pub bytes: i128,
    /// What it was cleaned with; empty for what we do with directories.
    pub command: String,
    /// How long it took.
    pub took: Duration,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// The engine's knowledge, for whoever runs beside it.
#[derive(Clone, Default)]
pub struct Knowledge(Arc<OnceLock<UnboundedSender<Message>>>);

impl Knowledge {
    /// Says where the engine is asked.
    pub fn is_at(&self, outbox: UnboundedSender<Message>) {
        // Who has said so already has said the same.
        let _ = self.0.set(outbox);
    }

    /// All volumes that are known; `None` while not all are.
    pub async fn volumes(&self) -> Option<Vec<Arc<Volume>>> {
        let (ask, answer) = EngineQuery::new(|engine| {
            let known = engine.known();
            let volume = |key: &ObjectKey| known.volume(&key.name).cloned();
            engine.is_synced().then(|| known.keys(Kind::Volume).iter().filter_map(volume).collect())
        });
        self.0.get()?.send(Message::Query(ask)).ok()?;
        answer.await.ok()?
    }
}

/// How the rules of a provisioner are set up that removes what lies behind volumes and makes none.
pub fn provisioner_config(owner: &Owner, also: Vec<Name>) -> ProvisionerConfig {
    ProvisionerConfig {
        aliases: also,
        provisions: false,
        adds_finalizer: false,
        ..ProvisionerConfig::new(owner.provisioner.clone())
    }
}
