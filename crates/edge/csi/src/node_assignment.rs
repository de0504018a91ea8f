//! Assigning claims with Immediate binding to this node, where one provisioner runs on each node.
//!
//! All provisioners see such a claim at the same time. Each waits for a random delay, which grows
//! with every attempt, so that mostly one of them tries. The resourceVersion in the write ensures
//! that only one succeeds.

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bindery_model::{Annotation, ClaimKey, Name};
use bindery_provisioner_sdk::{Accessibility, ProvisionContext, ProvisionRequest, claim_path, class_path};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::capacity::Segment;
use crate::facts::{Patch, ReadResult, WriteResult};
use crate::fields::{text, text_or_empty};
use crate::objects::ObjectClient;
use crate::storage::Csi;

/// The shortest interval between two looks at the unassigned claims.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// A claim that is not assigned to any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnassignedClaim {
    /// The claim.
    pub claim: ClaimKey,
    /// Its UID.
    pub uid: Name,
    /// Its class.
    pub class: Name,
    /// The name of the volume to create for it.
    pub volume: Name,
}

/// Assigns claims to a node.
pub struct NodeAssignment {
    /// The driver.
    pub csi: Arc<Csi>,
    /// The API server.
    pub objects: Arc<dyn ObjectClient>,
    /// The node.
    pub node: Name,
    /// The node's topology segment.
    pub segment: Segment,
    /// The longest delay before the first attempt.
    pub delay_base: Duration,
    /// The upper limit of a delay.
    pub delay_max: Duration,
}

impl NodeAssignment {
    /// Runs forever; `unassigned` lists the unassigned claims, or returns `None` until they are
    /// known.
    pub async fn run<F>(self, unassigned: impl Fn() -> F)
    where
        F: Future<Output = Option<Vec<UnassignedClaim>>>,
    {
        let every = (self.delay_base / 100).max(POLL_INTERVAL_MIN);
        // Per claim: the number of attempts, and when the next one is due. Assigned claims are
        // dropped.
        let mut attempts: BTreeMap<Name, (u32, Instant)> = BTreeMap::new();
        loop {
            sleep(every).await;
            let Some(unassigned) = unassigned().await else { continue };
            attempts.retain(|uid, _| unassigned.iter().any(|claim| claim.uid == *uid));
            for claim in unassigned {
                let (attempt, due) =
                    attempts.entry(claim.uid.clone()).or_insert_with(|| (0, Instant::now() + self.delay(0)));
                if Instant::now() < *due {
                    continue;
                }
                *attempt += 1;
                *due = Instant::now() + self.delay(*attempt);
                match self.assign(&claim).await {
                    Ok(()) => {}
                    Err(error) => tracing::debug!(claim = %claim.claim, error, "claim not assigned to this node"),
                }
            }
        }
    }

    fn delay(&self, attempt: u32) -> Duration {
        // Uniform in 0..=1.
        let chance = f64::from(RandomState::new().hash_one(attempt) as u32) / f64::from(u32::MAX);
        delay(self.delay_base, self.delay_max, attempt, chance)
    }

    /// Assigns a claim to this node if it is still unassigned and there is enough capacity. If the
    /// capacity is unknown, the claim is assigned anyway: an error then shows in its events.
    async fn assign(&self, unassigned: &UnassignedClaim) -> Result<(), String> {
        let claim = self.read(&claim_path(&unassigned.claim)).await?;
        let selected = claim.pointer("/metadata/annotations").and_then(|all| all.get(Annotation::SelectedNode.key()));
        let is_assigned = selected.and_then(Value::as_str).is_some_and(|node| !node.is_empty());
        if is_assigned
            || text_or_empty(&claim, "/metadata/uid") != unassigned.uid
            || text(&claim, "/spec/volumeName").is_some()
        {
            return Err("the claim was assigned or replaced in the meantime".into());
        }
        let class = self.read(&class_path(&unassigned.class)).await?;
        let order = self.request(unassigned, &class);
        match self.csi.has_capacity(ProvisionContext { request: &order, claim: &claim, class: &class }).await {
            Ok(true) => {}
            Ok(false) => return Err("not enough capacity on this node".into()),
            Err(error) => tracing::debug!(claim = %unassigned.claim, error, "cannot check capacity for claim"),
        }
        match self.objects.patch(&self.assignment_patch(&unassigned.claim, &claim)).await {
            WriteResult::Object(_) => {
                tracing::info!(claim = %unassigned.claim, node = %self.node, "claim assigned to this node");
                Ok(())
            }
            WriteResult::Forbidden(error) | WriteResult::Conflict(error) | WriteResult::Failed(error) => Err(error),
        }
    }

    async fn read(&self, path: &str) -> Result<Value, String> {
        match self.objects.get(path).await {
            ReadResult::Object(object) => Ok(object),
            ReadResult::Missing(error) | ReadResult::Failed(error) => Err(error),
        }
    }

    fn request(&self, unassigned: &UnassignedClaim, class: &Value) -> ProvisionRequest {
        let term: Vec<(Name, Name)> =
            self.segment.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect();
        let here = Accessibility { requisite: vec![term.clone()], preferred: vec![term] };
        ProvisionRequest {
            claim: unassigned.claim.clone(),
            uid: unassigned.uid.clone(),
            version: 0,
            class: unassigned.class.clone(),
            class_version: 0,
            provisioner: text_or_empty(class, "/provisioner").into(),
            volume: unassigned.volume.clone(),
            has_finalizer: true,
            node: Some(self.node.clone()),
            topology: Ok((!self.segment.is_empty()).then_some(here)),
            attempt: None,
        }
    }

    /// The patch that assigns a claim.
    fn assignment_patch(&self, key: &ClaimKey, seen: &Value) -> Patch {
        let metadata = json!({
            "uid": seen["metadata"]["uid"],
            "resourceVersion": seen["metadata"]["resourceVersion"],
            "annotations": {Annotation::SelectedNode.key(): self.node.as_str()},
        });
        Patch { path: claim_path(key), body: json!({"metadata": metadata}) }
    }
}

/// The delay before an attempt: doubles with each attempt up to `max`, less a random part of
/// `base`.
fn delay(base: Duration, max: Duration, attempt: u32, chance: f64) -> Duration {
    let whole = base.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX)).min(max);
    whole.saturating_sub(base.mul_f64(chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_a_limit_with_jitter() {
        let seconds =
            |attempt, chance| delay(Duration::from_secs(20), Duration::from_secs(60), attempt, chance).as_secs();
        assert_eq!((seconds(0, 0.0), seconds(0, 0.5), seconds(0, 1.0)), (20, 10, 0));
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (40, 20));
        assert_eq!((seconds(2, 0.0), seconds(40, 0.0), seconds(40, 1.0)), (60, 60, 40));
    }
}
