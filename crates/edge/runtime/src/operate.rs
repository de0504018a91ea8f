//! Work outside the API: directories on this host, and the pods that scrub volumes.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bindery_rules_api::{Failure, Operation, OperationOutput, Plugin};
use futures::future::BoxFuture;

use crate::api::Api;
use crate::events::EventSink;
use crate::observe::{Observer, Operated};
use crate::recycle;

/// Whoever does what the engine orders outside the API. Every operation can be done twice without harm.
pub trait RunOperation: Send + Sync {
    /// Does it, and says how it went.
    fn operate(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>>;
}

/// Does what the binder orders: directories on this host, and pods that scrub volumes.
pub struct InTreeOperations {
    api: Arc<Api>,
    events: EventSink,
    observer: Arc<dyn Observer>,
}

impl InTreeOperations {
    /// An operator on this host. The observer hears how long its work takes.
    pub fn new(api: Arc<Api>, events: EventSink, observer: Arc<dyn Observer>) -> InTreeOperations {
        InTreeOperations { api, events, observer }
    }

    async fn carry_out(&self, operation: Operation) -> Result<OperationOutput, Failure> {
        let (name, timed, began) = (operation.name(), timed(&operation), Instant::now());
        tracing::info!(operation = name, "begins");
        let outcome = match operation {
            Operation::Provision(provision) => on_disk(provision.path.to_string(), make_directory).await,
            Operation::CleanUp(provision) => on_disk(provision.path.to_string(), remove_all).await,
            Operation::DeleteStorage { plugin: Plugin::HostPath, path, .. } => {
                on_disk(path.to_string(), remove_all).await
            }
            Operation::DeleteStorage { plugin: Plugin::Nfs, .. } => Err("no deletable volume plugin matched".into()),
            Operation::Recycle(recycle) => recycle::recycle(&self.api, &self.events, &recycle).await,
            Operation::Prepare(_) | Operation::Make(..) | Operation::Unmake(..) | Operation::Remove(_) => {
                Err("there is no storage here".into())
            }
        };
        if let Some((plugin, operation)) = timed {
            let (took, succeeded) = (began.elapsed(), outcome.is_ok());
            self.observer.operated(&Operated { plugin: plugin.as_str(), operation, took, succeeded });
        }
        match &outcome {
            Ok(()) => tracing::info!(operation = name, "is done"),
            Err(error) => tracing::warn!(operation = name, error, "failed"),
        }
        outcome.map(|()| OperationOutput::default()).map_err(Failure::new)
    }
}

impl RunOperation for InTreeOperations {
    fn operate(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        Box::pin(self.carry_out(operation))
    }
}

/// Under which plugin and name an operation is timed, as upstream times it.
fn timed(operation: &Operation) -> Option<(Plugin, &'static str)> {
    match operation {
        Operation::Provision(_) => Some((Plugin::HostPath, "volume_provision")),
        Operation::DeleteStorage { plugin, .. } => Some((*plugin, "volume_delete")),
        Operation::CleanUp(_) | Operation::Recycle(_) => None,
        Operation::Prepare(_) | Operation::Make(..) | Operation::Unmake(..) | Operation::Remove(_) => None,
    }
}

/// Disks may be slow: they are not waited for on a thread that others need.
async fn on_disk(path: String, work: fn(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(move || work(Path::new(&path)).map_err(|error| error.to_string()));
    done.await.unwrap_or_else(|panic| Err(panic.to_string()))
}

fn make_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(path)?;
    // Whatever the process's mask took away.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o750))
}

/// Removes a directory and all below it, never following a link. What is not there is removed already.
fn remove_all(path: &Path) -> std::io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_and_removed_and_links_not_followed() {
        let root = std::env::temp_dir().join(format!("bindery-operate-{}", std::process::id()));
        let (volume, outside) = (root.join("volume"), root.join("outside"));
        make_directory(&volume).expect("made");
        make_directory(&volume).expect("made twice");
        make_directory(&outside).expect("made");
        std::fs::write(outside.join("precious"), "data").expect("written");
        std::os::unix::fs::symlink(&outside, volume.join("link")).expect("linked");
        remove_all(&volume).expect("removed");
        remove_all(&volume).expect("removed twice");
        assert!(!volume.exists() && outside.join("precious").exists());
        std::os::unix::fs::symlink(&outside, &volume).expect("linked");
        remove_all(&volume).expect("removed");
        assert!(outside.join("precious").exists(), "a volume that is itself a link loses the link only");
        remove_all(&root).expect("cleaned up");
    }
}
