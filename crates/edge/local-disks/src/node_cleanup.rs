//! Runs once in a cluster: deletes claims and volumes of deleted nodes. It never touches data.
//!
//! Lists show what might have to be deleted. Before a deletion, everything it depends on is read
//! live: the volume, its claim, and that no node has any of the names. The deletion carries the UID
//! and resourceVersion that were read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_model::event::{EventType, Reason};
use bindery_model::{ClaimKey, Meta, Name, ObjectKey};
use bindery_provisioner_sdk::{claim_path, volume_path};
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink, GetError};
use serde_json::{Value, json};

use crate::deleted_nodes::{Cleanup, ExistingNodes, decide_claim, decide_volume, hosts};
use crate::discover::HOST_LABEL;

/// The component in events.
const COMPONENT: &str = "cleanup-controller";

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// A claim.
    Claim,
    /// A volume, by its phase.
    Volume(String),
}

/// Observes deletions, for metrics.
pub trait DeletionObserver: Send + Sync + 'static {
    /// A deletion has succeeded or failed.
    fn deleted(&self, what: &Deleted, succeeded: bool);
}

/// Deletes claims and volumes of deleted nodes.
pub struct NodeCleanup {
    /// The API server.
    pub api: Arc<Api>,
    /// The classes to clean up.
    pub classes: BTreeSet<String>,
    /// How long a node must be deleted before its claims are.
    pub delay: Duration,
    /// Publishes events.
    pub events: EventSink,
    /// For metrics.
    pub observer: Arc<dyn DeletionObserver>,
    /// Since when a volume's node has been missing, by the volume's UID.
    pub missing_since: BTreeMap<String, Instant>,
}

impl NodeCleanup {
    /// Checks all volumes once.
    pub async fn run_once(&mut self, now: Instant) -> Result<(), String> {
        // The API server's cache is good enough for a first look.
        let volumes = self.list("/api/v1/persistentvolumes?resourceVersion=0").await?;
        let nodes = ExistingNodes::new(&self.list("/api/v1/nodes?resourceVersion=0").await?);
        let mut missing = BTreeSet::new();
        for volume in &volumes {
            let outcome = match decide_volume(volume, &self.classes, &nodes).cleanup {
                Cleanup::Nothing => continue,
                Cleanup::DeleteVolume => self.delete_volume(volume).await,
                Cleanup::DeleteClaim => {
                    let uid = text(volume, "/metadata/uid");
                    missing.insert(uid.clone());
                    let missing_since = *self.missing_since.entry(uid).or_insert_with(|| {
                        self.events.publish(node_deleted_event(volume));
                        now
                    });
                    if now.duration_since(missing_since) < self.delay {
                        continue;
                    }
                    self.delete_claim(volume).await
                }
            };
            if let Err(error) = outcome {
                tracing::warn!(volume = text(volume, "/metadata/name"), error, "node cleanup failed for volume");
            }
        }
        // If the node comes back, or everything is deleted, the delay starts over.
        self.missing_since.retain(|uid, _| missing.contains(uid));
        Ok(())
    }

    async fn delete_volume(&self, seen: &Value) -> Result<(), String> {
        let Some(volume) = self.confirm(seen, &Cleanup::DeleteVolume).await? else { return Ok(()) };
        let deleted = Deleted::Volume(text(&volume, "/status/phase"));
        self.delete(&volume_path(&name(&volume)), &volume, &deleted).await
    }

    async fn delete_claim(&self, seen: &Value) -> Result<(), String> {
        let Some(volume) = self.confirm(seen, &Cleanup::DeleteClaim).await? else { return Ok(()) };
        let path = claim_path(&claim_key(&volume));
        let claim = self.get(&path).await?;
        match (decide_claim(&volume, claim.as_ref()).cleanup, claim) {
            (Cleanup::DeleteClaim, Some(claim)) => self.delete(&path, &claim, &Deleted::Claim).await,
            (Cleanup::Nothing | Cleanup::DeleteVolume | Cleanup::DeleteClaim, _) => Ok(()),
        }
    }

    /// Reads the volume and every node that it could be on, and returns the volume if the decision
    /// is still the same.
    async fn confirm(&self, seen: &Value, expected: &Cleanup) -> Result<Option<Value>, String> {
        let Some(volume) = self.get(&volume_path(&name(seen))).await? else { return Ok(None) };
        let Some(hosts) = hosts(&volume).filter(|_| volume["metadata"]["uid"] == seen["metadata"]["uid"]) else {
            return Ok(None);
        };
        let mut nodes = Vec::new();
        for host in &hosts {
            nodes.extend(self.get(&format!("/api/v1/nodes/{host}")).await?);
            nodes.extend(self.list(&format!("/api/v1/nodes?labelSelector={HOST_LABEL}%3D{host}")).await?);
        }
        let decision = decide_volume(&volume, &self.classes, &ExistingNodes::new(&nodes));
        Ok((decision.cleanup == *expected).then_some(volume))
    }

    async fn delete(&self, path: &str, object: &Value, what: &Deleted) -> Result<(), String> {
        let (uid, version) = (&object["metadata"]["uid"], &object["metadata"]["resourceVersion"]);
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid, "resourceVersion": version},
        });
        let request = http::Request::delete(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let outcome = match self.api.object(request).await {
            Ok(_) | Err(GetError::NotFound(_)) => Ok(()),
            Err(GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        };
        self.observer.deleted(what, outcome.is_ok());
        tracing::info!(path, ?what, succeeded = outcome.is_ok(), "deleted object of missing node");
        outcome
    }

    async fn get(&self, path: &str) -> Result<Option<Value>, String> {
        match self.api.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(GetError::NotFound(_)) => Ok(None),
            Err(GetError::Rejected(_, error) | GetError::Lost(error)) => Err(error),
        }
    }

    async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let mut list = self.api.get(path).await.map_err(|error| error.to_string())?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn name(object: &Value) -> Name {
    text(object, "/metadata/name").into()
}

fn claim_key(volume: &Value) -> ClaimKey {
    ClaimKey {
        namespace: text(volume, "/spec/claimRef/namespace").into(),
        name: text(volume, "/spec/claimRef/name").into(),
    }
}

/// The event for a claim whose volume is on a deleted node.
fn node_deleted_event(volume: &Value) -> Event {
    let key = claim_key(volume);
    let meta = Meta {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: text(volume, "/spec/claimRef/uid").into(),
        version: text(volume, "/spec/claimRef/resourceVersion").parse().unwrap_or_default(),
    };
    let hosts: Vec<String> = hosts(volume).unwrap_or_default().into_iter().collect();
    let message = format!("volume {} is on a node that no longer exists: {}", name(volume), hosts.join(", "));
    Event {
        about: ObjectKey::from(key),
        meta,
        event_type: EventType::Warning,
        reason: Reason::ReferencedNodeDeleted,
        message,
        component: COMPONENT,
        retry_in: None,
        missing: None,
    }
}
