//! The limit: a binder that decides nothing. It knows that claim `c-N` gets volume `pv-N`, and only writes. What it reaches
//! is what the API server, the client and the machine let any binder reach.
//!
//! A process of its own, so that what it uses is measured like that of the others.

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

/// How many claims are being bound at once. More was not faster, and fewer were not enough on a slow road.
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

struct Limit {
    client: Client,
    volumes: HashMap<String, Object>,
    slots: Arc<Semaphore>,
}

/// Binds for ever.
pub async fn run(kubeconfig: &Path) -> Result<(), String> {
    let client = client(kubeconfig).await?;
    let volumes = list(&client, VOLUMES).await?;
    let claims = list(&client, CLAIMS).await?;
    let volumes = volumes.items.into_iter().map(|volume| (volume.metadata.name.clone(), volume)).collect();
    let limit = Arc::new(Limit { client, volumes, slots: Arc::new(Semaphore::new(AT_ONCE)) });
    for claim in claims.items {
        limit.start(claim);
    }
    let mut version = claims.metadata.resource_version;
    loop {
        // The API server ends the watch of a reader that falls behind.
        limit.watch(&mut version).await?;
    }
}

async fn list(client: &Client, path: &str) -> Result<List, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    client.request(request).await.map_err(|error| format!("{path}: {error}"))
}

impl Limit {
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

    /// Binds a claim as soon as there is a slot.
    fn start(self: &Arc<Self>, claim: Object) {
        if !claim.spec.volume_name.is_empty() {
            return;
        }
        let limit = Arc::clone(self);
        tokio::spawn(async move {
            let slot = limit.slots.acquire().await;
            if let Err(error) = limit.bind(&claim).await {
                eprintln!("{}: {error}", claim.metadata.name);
            }
            drop(slot);
        });
    }

    /// The four writes of a bind, one after the other: the first reserves, so it comes before all others, and the claim is
    /// not shown as Bound before its volume is.
    async fn bind(&self, claim: &Object) -> Result<(), String> {
        let name = claim.metadata.name.replacen("c-", "pv-", 1);
        let volume = self.volumes.get(&name).ok_or("there is no volume for it")?;
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
