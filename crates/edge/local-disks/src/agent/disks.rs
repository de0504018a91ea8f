//! The disks of a node as a [`Storage`]: deleting a volume means cleaning its disk.

use std::sync::Arc;
use std::time::Instant;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Name, Node, Volume, VolumeMode};
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage, volume_path};
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink};
use futures::future::{BoxFuture, ready};
use serde_json::Value;

use super::{Cleaned, Cleanings, DiskObserver, EngineVolumes};
use crate::clean::{self, LockError, Target};
use crate::config::{Cleaner, Config};
use crate::discover::{ExistingVolumes, Shape};
use crate::rules::cleaning as rules;

/// The disks of a node.
pub struct LocalDisks {
    /// The API server, for reading a volume again after locking its disk.
    pub api: Arc<Api>,
    /// The configuration.
    pub config: Arc<Config>,
    /// The node.
    pub node: Arc<Node>,
    /// The volumes in the engine's cache.
    pub engine_volumes: EngineVolumes,
    /// The state of all cleanings.
    pub cleanings: Cleanings,
    /// Publishes events.
    pub events: EventSink,
    /// The component in events.
    pub component: &'static str,
    /// For metrics.
    pub observer: Arc<dyn DiskObserver>,
}

impl LocalDisks {
    async fn clean(&self, volume: &Volume) -> Result<(), Failure> {
        let untried = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let volumes =
            self.engine_volumes.list().await.ok_or_else(|| untried("the cache of volumes is not synced yet".into()))?;
        let known = ExistingVolumes::new(&self.node, volumes);
        let target = clean::target(&self.config, &known, volume).map_err(|no| Failure::new(no.to_string()))?;
        if !self.cleanings.begin(volume.name()) {
            return Err(untried("the disk is already being cleaned".into()));
        }
        let mut running = Running { cleanings: &self.cleanings, volume: volume.name(), succeeded: false };
        let began = Instant::now();
        let outcome = self.lock_and_clean(volume, &target).await;
        running.succeeded = outcome.is_ok();
        drop(running);
        let was_tried = outcome.as_ref().map_or_else(|failure| failure.effect != FailureEffect::NotAttempted, |_| true);
        if was_tried {
            self.observer.cleaned(&Cleaned {
                mode: volume.volume_mode,
                bytes: volume.size().units(),
                command: command(&target, volume.volume_mode),
                took: began.elapsed(),
                succeeded: outcome.is_ok(),
            });
        }
        outcome
    }

    /// Locks the disk, checks that its volume has not changed, and cleans it.
    async fn lock_and_clean(&self, volume: &Volume, target: &Target) -> Result<(), Failure> {
        let locked = {
            let target = target.clone();
            on_disk(move || clean::lock(&target)).await.map_err(Failure::new)?
        };
        let locked = locked.map_err(|not_held| match not_held {
            LockError::Locked(problem) => Failure::new(problem).with(FailureEffect::NotAttempted),
            LockError::Problem(problem) => Failure::new(problem),
        })?;
        self.check(volume).await?;
        if locked.shape() == Shape::Block {
            let message = format!("cleaning {}/{}", target.mount_dir.display(), target.entry);
            let event = Event::volume(volume, EventType::Normal, Reason::VolumeDelete, message);
            self.events.publish(Event { component: self.component, ..event });
        }
        let path = target.mount_dir.join(&target.entry);
        tracing::info!(volume = volume.name().as_str(), path = %path.display(), rule = rules::CLEAN.name, "cleaning disk");
        // The lock is released when the cleaning has ended, not when the caller gives up.
        on_disk(move || locked.clean()).await.and_then(|cleaned| cleaned).map_err(Failure::new)
    }

    /// Checks that the volume has not changed, now that its disk is locked.
    async fn check(&self, volume: &Volume) -> Result<(), Failure> {
        let untried = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let live = self.api.get(&volume_path(volume.name())).await.map_err(|error| untried(error.to_string()))?;
        let live = Volume::from_json(live.to_string().as_bytes()).map_err(|error| untried(error.to_string()))?;
        clean::check_unchanged(volume, &live).map_err(|error| untried(error.to_string()))
    }
}

/// Ends a cleaning, also one that is cancelled because the configuration has changed.
struct Running<'a> {
    cleanings: &'a Cleanings,
    volume: &'a Name,
    succeeded: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.cleanings.end(self.volume, self.succeeded);
    }
}

/// The cleaner command, for metrics.
fn command(target: &Target, mode: VolumeMode) -> String {
    match (&target.cleaner, mode) {
        (_, VolumeMode::Filesystem) => String::new(),
        (Cleaner::Builtin(wipe), VolumeMode::Block) => wipe.as_str().to_owned(),
        (Cleaner::Command(words), VolumeMode::Block) => words.join(" "),
    }
}

/// Runs blocking disk operations on their own thread.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|panic| panic.to_string())
}

impl Storage for LocalDisks {
    fn create<'a>(&'a self, _: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(
            Err(Failure::new("local disks are discovered, not provisioned").with(FailureEffect::Infeasible)),
        ))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let lean =
                Volume::from_json(volume.to_string().as_bytes()).map_err(|error| Failure::new(error.to_string()))?;
            self.clean(&lean).await
        })
    }
}
