//! Assigning claims with Immediate binding to this node, where one provisioner runs on each node.
//!
//! All provisioners see such a claim at the same time. Each waits for a random delay, which grows
//! with every attempt, so that mostly one of them tries. The resourceVersion in the write ensures
//! that only one succeeds.
//!
//! Nothing is polled: claims are looked at after the engine has decided about them, which it does
//! when they or their class have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bindery_model::{Annotation, ClaimKey, Name};
use bindery_provisioner_sdk::{Accessibility, ProvisionContext, ProvisionRequest, claim_path, class_path};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::capacity::Segment;
use crate::coalesced::Coalesced;
use crate::facts::{Patch, ReadResult, WriteResult};
use crate::fields::{text, text_or_empty};
use crate::objects::ObjectClient;
use crate::storage::Csi;

/// Longer than the process runs.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The claims about which a decision was made since they were last looked at.
pub type TouchedClaims = Coalesced<ClaimKey>;

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

/// The unassigned claims, with the number of attempts and when the next one is due.
#[derive(Debug, Default)]
struct Waiting(BTreeMap<ClaimKey, (UnassignedClaim, u32, Instant)>);

impl Waiting {
    /// Adds a claim, or removes it if it is no longer unassigned. A claim that is already waiting
    /// keeps its place.
    fn update(&mut self, key: ClaimKey, claim: Option<UnassignedClaim>, first_due: impl FnOnce() -> Instant) {
        let Some(claim) = claim else {
            self.0.remove(&key);
            return;
        };
        match self.0.get_mut(&key).filter(|(known, _, _)| known.uid == claim.uid) {
            Some((known, _, _)) => *known = claim,
            None => drop(self.0.insert(key, (claim, 0, first_due()))),
        }
    }

    /// The claims whose next attempt is due. `next_due` says when the attempt after that one is.
    fn take_due(&mut self, now: Instant, next_due: impl Fn(u32) -> Instant) -> Vec<UnassignedClaim> {
        let mut claims = Vec::new();
        for (claim, attempts, due) in self.0.values_mut().filter(|(_, _, due)| *due <= now) {
            *attempts = attempts.saturating_add(1);
            *due = next_due(*attempts);
            claims.push(claim.clone());
        }
        claims
    }

    fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|(_, _, due)| *due).min()
    }
}

impl NodeAssignment {
    /// Runs forever. Looks only at claims that are in `touched`: `describe` returns each of them,
    /// with what is needed to assign it if it is unassigned.
    pub async fn run<F>(self, touched: Arc<TouchedClaims>, describe: impl Fn(BTreeSet<ClaimKey>) -> F)
    where
        F: Future<Output = Option<Vec<(ClaimKey, Option<UnassignedClaim>)>>>,
    {
        let mut waiting = Waiting::default();
        loop {
            let due = waiting.next_due().unwrap_or_else(|| Instant::now() + FOREVER);
            tokio::select! {
                () = sleep_until(due) => {
                    let next_due = |attempts| Instant::now() + self.delay(attempts);
                    for claim in waiting.take_due(Instant::now(), next_due) {
                        if let Err(error) = self.assign(&claim).await {
                            tracing::debug!(claim = %claim.claim, error, "claim not assigned to this node");
                        }
                    }
                }
                keys = touched.next() => {
                    // `None` only if the engine has stopped.
                    for (key, claim) in describe(keys).await.unwrap_or_default() {
                        waiting.update(key, claim, || Instant::now() + self.delay(0));
                    }
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

    fn claim(name: &str, uid: &str) -> UnassignedClaim {
        let claim = ClaimKey::new("ns", name);
        UnassignedClaim { claim, uid: uid.into(), class: "fast".into(), volume: format!("pvc-{uid}").as_str().into() }
    }

    #[test]
    fn claims_wait_for_their_turn_until_they_are_assigned() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let (a, b) = (claim("a", "1"), claim("b", "2"));
        let mut waiting = Waiting::default();
        assert_eq!(waiting.next_due(), None, "there is nothing to do until a claim is touched");
        waiting.update(a.claim.clone(), Some(a.clone()), || start + second);
        waiting.update(b.claim.clone(), Some(b.clone()), || start + second * 2);
        waiting.update(a.claim.clone(), Some(a.clone()), || start);
        assert_eq!(waiting.next_due(), Some(start + second), "a claim that is touched again keeps its place");
        let later = |attempts: u32| start + second * (10 * attempts);
        assert_eq!(waiting.take_due(start, later), []);
        assert_eq!(waiting.take_due(start + second, later), std::slice::from_ref(&a));
        assert_eq!(waiting.take_due(start + second * 2, later), std::slice::from_ref(&b));
        assert_eq!(waiting.next_due(), Some(start + second * 10), "they are tried again");
        waiting.update(a.claim.clone(), None, || start);
        assert_eq!(waiting.take_due(start + second * 10, later), [b], "an assigned claim is dropped");
        let replaced = claim("b", "3");
        waiting.update(replaced.claim.clone(), Some(replaced.clone()), || start);
        assert_eq!(waiting.take_due(start, later), [replaced], "a new claim of the same name starts over");
        waiting.update(ClaimKey::new("ns", "b"), None, || start);
        assert_eq!(waiting.next_due(), None);
    }

    #[test]
    fn delay_doubles_up_to_a_limit_with_jitter() {
        let seconds =
            |attempt, chance| delay(Duration::from_secs(20), Duration::from_secs(60), attempt, chance).as_secs();
        assert_eq!((seconds(0, 0.0), seconds(0, 0.5), seconds(0, 1.0)), (20, 10, 0));
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (40, 20));
        assert_eq!((seconds(2, 0.0), seconds(40, 0.0), seconds(40, 1.0)), (60, 60, 40));
    }
}
