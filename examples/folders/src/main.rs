//! A provisioner of one's own: a directory for each claim of classes whose provisioner is `example.com/folders`.
//!
//! ```sh
//! KUBECONFIG=… cargo run -p folders -- /srv/volumes
//! ```

use std::path::PathBuf;

use bindery_provisioner_sdk::{Config, Failure, ProvisionContext, Storage, serve};
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

/// Directories below a root, named as their volumes.
struct Folders {
    root: PathBuf,
}

impl Storage for Folders {
    fn create<'a>(&'a self, ask: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        // Made twice, it is made once: the name is the order's, and an order is always for the same volume.
        let path = self.root.join(ask.request.volume.as_str());
        let volume = json!({"spec": {
            "capacity": {"storage": ask.claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": ask.claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": ask.class["reclaimPolicy"],
            "hostPath": {"path": path},
        }});
        let made = std::fs::create_dir_all(&path).map_err(|error| Failure::new(error.to_string()));
        Box::pin(ready(made.map(|()| volume)))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        // Whatever a volume says of itself, only what is named as one of ours is removed.
        let path = self.root.join(volume["metadata"]["name"].as_str().unwrap_or_default());
        let ours = path.parent() == Some(&self.root) && volume["spec"]["hostPath"]["path"].as_str() == path.to_str();
        let removed = match ours.then(|| std::fs::remove_dir_all(&path)) {
            None => Err(Failure::new("this is no directory of ours")),
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::new(error.to_string())),
            Some(_) => Ok(()),
        };
        Box::pin(ready(removed))
    }
}

#[tokio::main]
async fn main() -> Result<(), String> {
    let root = std::env::args().nth(1).ok_or("usage: folders ROOT")?;
    serve(Config::new("example.com/folders"), Folders { root: root.into() }).await
}
