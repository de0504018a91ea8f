//! The no-decision baseline: a binder that knows that claim `c-N` gets volume `pv-N`, and only
//! writes. Its rate is what the API server, the client and the machine permit any binder.
//!
//! It runs as a separate process, so that its resource usage is measured like that of the others.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use http::Method;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::cluster::{CLAIMS, VOLUMES, client, request};

/// The number of claims bound concurrently. More was not faster; fewer was slower with the delay.
const AT_ONCE: usize = 64;

#[derive(Clone, Deserialize)]
struct Object {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    volume_name: String,
    capacity: Value,
    access_modes: Value,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
    items: Vec<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

struct Baseline {
    client: Client,
    volumes: HashMap<String, Object>,
    slots: Arc<Semaphore>,
}

/// Binds claims until the process is killed.
pub async fn run(kubeconfig: &Path) -> Result<(), String> {
    let client = client(kubeconfig).await?;
    let volumes = list(&client, VOLUMES).await?;
    let claims = list(&client, CLAIMS).await?;
    let volumes = volumes.items.into_iter().map(|volume| (volume.metadata.name.clone(), volume)).collect();
    let baseline = Arc::new(Baseline { client, volumes, slots: Arc::new(Semaphore::new(AT_ONCE)) });
    for claim in claims.items {
        baseline.start(claim);
    }
    let mut version = claims.metadata.resource_version;
    loop {
        // The API server closes the watch of a slow client.
        baseline.watch(&mut version).await?;
    }
}

async fn list(client: &Client, path: &str) -> Result<List, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    client.request(request).await.map_err(|error| format!("{path}: {error}"))
}

impl Baseline {
    async fn watch(self: &Arc<Self>, version: &mut String) -> Result<(), String> {
        let url = format!("{CLAIMS}?watch=1&resourceVersion={version}");
        let request = http::Request::get(url).body(Vec::new()).map_err(|error| error.to_string())?;
        let stream = self.client.request_events::<Object>(request).await.map_err(|error| error.to_string())?;
        let mut stream = stream.boxed();
        while let Some(Ok(event)) = stream.next().await {
            match event {
                WatchEvent::Added(claim) => {
                    version.clone_from(&claim.metadata.resource_version);
                    self.start(claim);
                }
                WatchEvent::Modified(claim) => *version = claim.metadata.resource_version,
                WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(status.message),
            }
        }
        Ok(())
    }

    /// Binds a claim as soon as a slot is free.
    fn start(self: &Arc<Self>, claim: Object) {
        if !claim.spec.volume_name.is_empty() {
            return;
        }
        let baseline = Arc::clone(self);
        tokio::spawn(async move {
            let slot = baseline.slots.acquire().await;
            if let Err(error) = baseline.bind(&claim).await {
                eprintln!("{}: {error}", claim.metadata.name);
            }
            drop(slot);
        });
    }

    /// Sends the four writes of a bind in sequence: the volume is reserved first, and the claim is
    /// marked Bound after the volume.
    async fn bind(&self, claim: &Object) -> Result<(), String> {
        let name = claim.metadata.name.replacen("c-", "pv-", 1);
        let volume = self.volumes.get(&name).ok_or("its volume does not exist")?;
        let (volume_path, claim_path) = (format!("{VOLUMES}/{name}"), format!("{CLAIMS}/{}", claim.metadata.name));
        let claim_ref = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim.metadata.name,
            "uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version,
        });
        let by_us = "pv.kubernetes.io/bound-by-controller";
        let reserve = json!({"metadata": {"annotations": {by_us: "yes"}}, "spec": {"claimRef": claim_ref}});
        let reserved = self.patch(&volume_path, &volume.metadata, reserve).await?;
        let status = json!({"status": {"phase": "Bound"}});
        self.patch(&format!("{volume_path}/status"), &reserved.metadata, status).await?;
        let annotations = json!({by_us: "yes", "pv.kubernetes.io/bind-completed": "yes"});
        let complete = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": name}});
        let completed = self.patch(&claim_path, &claim.metadata, complete).await?;
        let Spec { capacity, access_modes, .. } = &volume.spec;
        let status = json!({"status": {"phase": "Bound", "accessModes": access_modes, "capacity": capacity}});
        self.patch(&format!("{claim_path}/status"), &completed.metadata, status).await.map(drop)
    }

    async fn patch(&self, path: &str, seen: &Meta, mut patch: Value) -> Result<Object, String> {
        patch["metadata"]["uid"] = seen.uid.as_str().into();
        patch["metadata"]["resourceVersion"] = seen.resource_version.as_str().into();
        let request = request(Method::PATCH, path, &patch)?;
        self.client.request(request).await.map_err(|error| error.to_string())
    }
}
