//! The disks of a node as a storage: what lies behind a released volume is removed by cleaning its disk.

use std::sync::Arc;
use std::time::Instant;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Node, Volume, VolumeMode};
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage, volume_path};
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink};
use futures::future::{BoxFuture, ready};
use serde_json::Value;

use super::{Cleaned, Cleanings, Hears, Knowledge};
use crate::clean::{self, Held, NotHeld, Target};
use crate::config::{Cleaner, Config};
use crate::discover::{Known, Shape};
use crate::rules::cleaning as rules;

/// The disks of a node.
pub struct LocalDisks {
    /// The API server, on which a volume is looked at again once its disk is held.
    pub api: Arc<Api>,
    /// What is configured.
    pub config: Arc<Config>,
    /// The node.
    pub node: Arc<Node>,
    /// All volumes.
    pub knowledge: Knowledge,
    /// What is being cleaned.
    pub cleanings: Cleanings,
    /// Where events go.
    pub events: EventSink,
    /// Who they are from.
    pub component: &'static str,
    /// Who counts.
    pub hears: Arc<dyn Hears>,
}

impl LocalDisks {
    async fn clean(&self, volume: &Volume) -> Result<(), Failure> {
        let untried = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let volumes = self.knowledge.volumes().await.ok_or_else(|| untried("not all volumes are known yet".into()))?;
        let known = Known::new(&self.node, volumes);
        let target = clean::target(&self.config, &known, volume).map_err(|no| Failure::new(no.to_string()))?;
        if !self.cleanings.begin(volume.name()) {
            return Err(untried("it is being cleaned already".into()));
        }
        let began = Instant::now();
        let outcome = self.hold_and_clean(volume, &target).await;
        self.cleanings.end(volume.name(), outcome.is_ok());
        let was_tried = outcome.as_ref().map_or_else(|failure| failure.effect != FailureEffect::NotAttempted, |_| true);
        if was_tried {
            self.hears.cleaned(&Cleaned {
                mode: volume.volume_mode,
                bytes: volume.size().units(),
                command: command(&target, volume.volume_mode),
                took: began.elapsed(),
                succeeded: outcome.is_ok(),
            });
        }
        outcome
    }

    /// Holds the disk, looks whether its volume is still what it was, and cleans.
    async fn hold_and_clean(&self, volume: &Volume, target: &Target) -> Result<(), Failure> {
        let held = {
            let target = target.clone();
            on_disk(move || clean::hold(&target)).await.map_err(Failure::new)?
        };
        let held = held.map_err(|not_held| match not_held {
            NotHeld::ByUs(problem) => Failure::new(problem).with(FailureEffect::NotAttempted),
            NotHeld::Problem(problem) => Failure::new(problem),
        })?;
        self.check(volume).await?;
        if held.shape() == Shape::Block {
            let message = format!("cleaning {}/{}", target.mount_dir.display(), target.entry);
            let notice = Event::volume(volume, EventType::Normal, Reason::VolumeDelete, message);
            self.events.publish(Event { component: self.component, ..notice });
        }
        let path = target.mount_dir.join(&target.entry);
        tracing::info!(volume = volume.name().as_str(), path = %path.display(), rule = rules::CLEAN.name, "cleans");
        on_disk(move || clean_and_let_go(held)).await.and_then(|cleaned| cleaned).map_err(Failure::new)
    }

    /// Looks at the volume again, now that its disk is held.
    async fn check(&self, volume: &Volume) -> Result<(), Failure> {
        let untried = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let live = self.api.get(&volume_path(volume.name())).await.map_err(|error| untried(error.to_string()))?;
        let live = Volume::from_json(live.to_string().as_bytes()).map_err(|flaw| untried(flaw.to_string()))?;
        clean::unchanged(volume, &live).map_err(|refusal| untried(refusal.to_string()))
    }
}

/// The disk is let go of when all is written.
fn clean_and_let_go(held: Held) -> Result<(), String> {
    held.clean()
}

/// What a disk is cleaned with, as metrics have it.
fn command(target: &Target, mode: VolumeMode) -> String {
    match (&target.cleaner, mode) {
        (_, VolumeMode::Filesystem) => String::new(),
        (Cleaner::Builtin(wipe), VolumeMode::Block) => wipe.as_str().to_owned(),
        (Cleaner::Command(words), VolumeMode::Block) => words.join(" "),
    }
}

/// Disks may be slow: they are not waited for on a thread that others need.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|panic| panic.to_string())
}

impl Storage for LocalDisks {
    fn create<'a>(&'a self, _: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(Err(Failure::new("local disks are discovered, and not made").with(FailureEffect::Infeasible))))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let lean =
                Volume::from_json(volume.to_string().as_bytes()).map_err(|flaw| Failure::new(flaw.to_string()))?;
            self.clean(&lean).await
        })
    }
}
