//! An example provisioner: creates a directory for each claim whose StorageClass names
//! `example.com/folders`.
//!
//! ```sh
//! KUBECONFIG=… cargo run -p folders -- /srv/volumes
//! ```

use std::path::PathBuf;

use bindery_provisioner_sdk::{Config, Failure, ProvisionContext, Storage, serve};
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

/// Directories below a root, each with the name of its volume.
struct Folders {
    root: PathBuf,
}

impl Storage for Folders {
    fn create<'a>(&'a self, context: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        // Idempotent: a repeated request has the same volume name.
        let path = self.root.join(context.request.volume.as_str());
        let volume = json!({"spec": {
            "capacity": {"storage": context.claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": context.claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": context.class["reclaimPolicy"],
            "hostPath": {"path": path},
        }});
        let created = std::fs::create_dir_all(&path).map_err(|error| Failure::new(error.to_string()));
        Box::pin(ready(created.map(|()| volume)))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        // Never delete a path outside the root, whatever the volume contains.
        let path = self.root.join(volume["metadata"]["name"].as_str().unwrap_or_default());
        let ours = path.parent() == Some(&self.root) && volume["spec"]["hostPath"]["path"].as_str() == path.to_str();
        let deleted = match ours.then(|| std::fs::remove_dir_all(&path)) {
            None => Err(Failure::new("the volume's path is not a directory of this provisioner")),
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::new(error.to_string())),
            Some(_) => Ok(()),
        };
        Box::pin(ready(deleted))
    }
}

#[tokio::main]
async fn main() -> Result<(), String> {
    let root = std::env::args().nth(1).ok_or("usage: folders ROOT")?;
    serve(Config::new("example.com/folders"), Folders { root: root.into() }).await
}
