//! What runs once in a cluster: sees to the claims and volumes of nodes that are gone. It never touches data.
//!
//! Lists say what might have to be done; before anything is, everything that it rests on is read live: the volume, its claim, and
//! that no node is there by any of the names; and a deletion carries the UID and the version of what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_model::event::{EventType, Reason};
use bindery_model::{ClaimKey, Meta, Name, ObjectKey};
use bindery_provisioner_sdk::{claim_path, volume_path};
use bindery_rules_api::Event;
use bindery_runtime::{Api, EventSink, GetError};
use serde_json::{Value, json};

use crate::discover::HOST_LABEL;
use crate::orphans::{Nodes, Orphan, hosts, judge, judge_claim};

/// Who events are from.
const COMPONENT: &str = "cleanup-controller";

/// What went, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// A claim.
    Claim,
    /// A volume, by its phase.
    Volume(String),
}

/// Hears what is done, to count it.
pub trait Counts: Send + Sync + 'static {
    /// Something was deleted, or could not be.
    fn deleted(&self, what: &Gone, succeeded: bool);
}

/// Sees to what was on nodes that are gone.
pub struct NodeCleanup {
    /// The API server.
    pub api: Arc<Api>,
    /// The classes whose volumes are seen to.
    pub classes: BTreeSet<String>,
    /// How long a node may be gone before claims go.
    pub delay: Duration,
    /// Where events go.
    pub events: EventSink,
    /// Who counts.
    pub counts: Arc<dyn Counts>,
    /// Since when a volume's node is known to be gone, by the volume's UID.
    pub since: BTreeMap<String, Instant>,
}

impl NodeCleanup {
    /// Looks at everything once.
    pub async fn round(&mut self, now: Instant) -> Result<(), String> {
        // What an API server remembers will do for a first look.
        let volumes = self.list("/api/v1/persistentvolumes?resourceVersion=0").await?;
        let nodes = Nodes::new(&self.list("/api/v1/nodes?resourceVersion=0").await?);
        let mut orphaned = BTreeSet::new();
        for volume in &volumes {
            let outcome = match judge(volume, &self.classes, &nodes).orphan {
                Orphan::Nothing => continue,
                Orphan::Volume => self.delete_volume(volume).await,
                Orphan::Claim => {
                    let uid = text(volume, "/metadata/uid");
                    orphaned.insert(uid.clone());
                    let since = *self.since.entry(uid).or_insert_with(|| {
                        self.events.publish(notice(volume));
                        now
                    });
                    if now.duration_since(since) < self.delay {
                        continue;
                    }
                    self.delete_claim(volume).await
                }
            };
            if let Err(error) = outcome {
                tracing::warn!(volume = text(volume, "/metadata/name"), error, "cannot be seen to");
            }
        }
        // Who comes back, or is seen to, starts anew if it goes again.
        self.since.retain(|uid, _| orphaned.contains(uid));
        Ok(())
    }

    async fn delete_volume(&self, seen: &Value) -> Result<(), String> {
        let Some(volume) = self.orphan(seen, &Orphan::Volume).await? else { return Ok(()) };
        let gone = Gone::Volume(text(&volume, "/status/phase"));
        self.delete(&volume_path(&name(&volume)), &volume, &gone).await
    }

    async fn delete_claim(&self, seen: &Value) -> Result<(), String> {
        let Some(volume) = self.orphan(seen, &Orphan::Claim).await? else { return Ok(()) };
        let path = claim_path(&claim_key(&volume));
        let claim = self.get(&path).await?;
        match (judge_claim(&volume, claim.as_ref()).orphan, claim) {
            (Orphan::Claim, Some(claim)) => self.delete(&path, &claim, &Gone::Claim).await,
            (Orphan::Nothing | Orphan::Volume | Orphan::Claim, _) => Ok(()),
        }
    }

    /// A volume as it is now, if the same still follows: by live reads of it and of every node that it could be on.
    async fn orphan(&self, seen: &Value, expected: &Orphan) -> Result<Option<Value>, String> {
        let Some(volume) = self.get(&volume_path(&name(seen))).await? else { return Ok(None) };
        let Some(hosts) = hosts(&volume).filter(|_| volume["metadata"]["uid"] == seen["metadata"]["uid"]) else {
            return Ok(None);
        };
        let mut nodes = Vec::new();
        for host in &hosts {
            nodes.extend(self.get(&format!("/api/v1/nodes/{host}")).await?);
            nodes.extend(self.list(&format!("/api/v1/nodes?labelSelector={HOST_LABEL}%3D{host}")).await?);
        }
        let judged = judge(&volume, &self.classes, &Nodes::new(&nodes));
        Ok((judged.orphan == *expected).then_some(volume))
    }

    async fn delete(&self, path: &str, object: &Value, what: &Gone) -> Result<(), String> {
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
        self.counts.deleted(what, outcome.is_ok());
        tracing::info!(path, ?what, succeeded = outcome.is_ok(), "its node is gone: deleted");
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

/// What is said of a claim whose volume is out of reach.
fn notice(volume: &Value) -> Event {
    let key = claim_key(volume);
    let meta = Meta {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: text(volume, "/spec/claimRef/uid").into(),
        version: text(volume, "/spec/claimRef/resourceVersion").parse().unwrap_or_default(),
    };
    let hosts: Vec<String> = hosts(volume).unwrap_or_default().into_iter().collect();
    let message = format!("volume {} is on a node that does not exist any more: {}", name(volume), hosts.join(", "));
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
