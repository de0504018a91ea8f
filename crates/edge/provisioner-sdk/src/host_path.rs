//! The in-tree host-path plugin as a storage: directories on the controller's host.

use std::io::ErrorKind;
use std::path::Path;

use bindery_rules_api::{Failure, check_deletable_path};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{ProvisionContext, Storage};

/// Directories on this host. The binder's rules choose the path; only directories below a `tmp`
/// directory are deleted.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostPath;

impl Storage for HostPath {
    /// Creates the directory of a prepared PersistentVolume, and returns that volume.
    fn create<'a>(&'a self, _: ProvisionContext<'a>, volume: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async { with_directory(volume, create_directory).await.map(|()| volume.clone()) })
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(with_directory(volume, delete_directory))
    }
}

/// Runs blocking work on a volume's directory off the async threads.
async fn with_directory(volume: &Value, work: fn(&Path) -> std::io::Result<()>) -> Result<(), Failure> {
    let Some(path) = volume["spec"]["hostPath"]["path"].as_str().map(str::to_owned) else {
        return Err(Failure::new("the volume has no spec.hostPath.path"));
    };
    let done = tokio::task::spawn_blocking(move || work(Path::new(&path))).await;
    match done {
        Ok(result) => result.map_err(|error| Failure::new(error.to_string())),
        Err(panic) => Err(Failure::new(panic.to_string())),
    }
}

fn create_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(path)?;
    // Set the mode again, independent of the process's umask.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o750))
}

/// Deletes a directory recursively without following symbolic links. It may be missing.
fn delete_directory(path: &Path) -> std::io::Result<()> {
    check_deletable_path(&path.to_string_lossy()).map_err(std::io::Error::other)?;
    let deleted = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match deleted {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_created_and_deleted_without_following_links() {
        let root = std::env::temp_dir().join(format!("tmp/bindery-host-path-{}", std::process::id()));
        let (volume, outside) = (root.join("volume"), root.join("outside"));
        create_directory(&volume).expect("created");
        create_directory(&volume).expect("created again");
        create_directory(&outside).expect("created");
        std::fs::write(outside.join("precious"), "data").expect("written");
        std::os::unix::fs::symlink(&outside, volume.join("link")).expect("linked");
        delete_directory(&volume).expect("deleted");
        delete_directory(&volume).expect("deleted again");
        assert!(!volume.exists() && outside.join("precious").exists());
        std::os::unix::fs::symlink(&outside, &volume).expect("linked");
        delete_directory(&volume).expect("deleted");
        assert!(outside.join("precious").exists(), "only the link itself is deleted");
        assert!(delete_directory(&volume.join("../outside")).is_err() && outside.exists());
        delete_directory(&root).expect("cleaned up");
    }
}
