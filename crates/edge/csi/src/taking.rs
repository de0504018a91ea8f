//! One provisioner on each node, and claims for which no node is chosen: one of them takes each, if it has room for it.
//!
//! All of them see such a claim at the same time. Each waits for a while of its own before it tries, and longer each time, so that
//! mostly one tries; that only one succeeds is made sure of by the version in the write.

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bindery_model::{Annotation, ClaimKey, Name};
use bindery_provisioner_sdk::{Accessibility, ProvisionContext, ProvisionRequest, claim_path, class_path};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::capacity::Place;
use crate::facts::{Found, Patch, Wrote};
use crate::fields::{text, text_or_empty};
use crate::look::Look;
use crate::storage::Csi;

/// The shortest time between two looks at what there is to take.
const LOOKED_EVERY_MIN: Duration = Duration::from_millis(10);

/// A claim that anybody may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free {
    /// Which.
    pub claim: ClaimKey,
    /// Which of that name.
    pub uid: Name,
    /// Its class.
    pub class: Name,
    /// What its volume will be called.
    pub volume: Name,
}

/// Takes claims for a node.
pub struct Taking {
    /// The storage.
    pub csi: Arc<Csi>,
    /// Who has the objects.
    pub look: Arc<dyn Look>,
    /// The node.
    pub node: Name,
    /// Where it is.
    pub place: Place,
    /// The longest wait before the first try.
    pub delay_base: Duration,
    /// What a wait becomes at most.
    pub delay_max: Duration,
}

impl Taking {
    /// Takes claims for ever; `free` says which there are, or nothing while that is not known.
    pub async fn go_on<F>(self, free: impl Fn() -> F)
    where
        F: Future<Output = Option<Vec<Free>>>,
    {
        let every = (self.delay_base / 100).max(LOOKED_EVERY_MIN);
        // How often each was tried, and when it is its turn again. What is taken, by whomever, is forgotten.
        let mut turns: BTreeMap<Name, (u32, Instant)> = BTreeMap::new();
        loop {
            sleep(every).await;
            let Some(free) = free().await else { continue };
            turns.retain(|uid, _| free.iter().any(|claim| claim.uid == *uid));
            for claim in free {
                let (tries, turn) =
                    turns.entry(claim.uid.clone()).or_insert_with(|| (0, Instant::now() + self.wait(0)));
                if Instant::now() < *turn {
                    continue;
                }
                *tries += 1;
                *turn = Instant::now() + self.wait(*tries);
                match self.take(&claim).await {
                    Ok(()) => {}
                    Err(error) => tracing::debug!(claim = %claim.claim, error, "was not taken"),
                }
            }
        }
    }

    fn wait(&self, tries: u32) -> Duration {
        // From 0 to 1, and another each time.
        let chance = f64::from(RandomState::new().hash_one(tries) as u32) / f64::from(u32::MAX);
        wait(self.delay_base, self.delay_max, tries, chance)
    }

    /// Takes a claim, if nobody has yet and there is room. Where it cannot be told whether there is, it is taken: what is wrong
    /// then shows in the claim's events.
    async fn take(&self, free: &Free) -> Result<(), String> {
        let claim = self.read(&claim_path(&free.claim)).await?;
        let selected = claim.pointer("/metadata/annotations").and_then(|all| all.get(Annotation::SelectedNode.key()));
        let is_taken = selected.and_then(Value::as_str).is_some_and(|node| !node.is_empty());
        if is_taken || text_or_empty(&claim, "/metadata/uid") != free.uid || text(&claim, "/spec/volumeName").is_some()
        {
            return Err("somebody else has it".into());
        }
        let class = self.read(&class_path(&free.class)).await?;
        let order = self.order(free, &class);
        match self.csi.has_room(ProvisionContext { request: &order, claim: &claim, class: &class }).await {
            Ok(true) => {}
            Ok(false) => return Err("there is no room for it on this node".into()),
            Err(error) => tracing::debug!(claim = %free.claim, error, "it cannot be told whether there is room for it"),
        }
        match self.look.patch(&self.taken(&free.claim, &claim)).await {
            Wrote::Object(_) => {
                tracing::info!(claim = %free.claim, node = %self.node, "is taken");
                Ok(())
            }
            Wrote::Forbidden(error) | Wrote::Changed(error) | Wrote::Failed(error) => Err(error),
        }
    }

    async fn read(&self, path: &str) -> Result<Value, String> {
        match self.look.get(path).await {
            Found::Object(object) => Ok(object),
            Found::Missing(error) | Found::Failed(error) => Err(error),
        }
    }

    fn order(&self, free: &Free, class: &Value) -> ProvisionRequest {
        let term: Vec<(Name, Name)> =
            self.place.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect();
        let here = Accessibility { requisite: vec![term.clone()], preferred: vec![term] };
        ProvisionRequest {
            claim: free.claim.clone(),
            uid: free.uid.clone(),
            version: 0,
            class: free.class.clone(),
            provisioner: text_or_empty(class, "/provisioner").into(),
            volume: free.volume.clone(),
            has_finalizer: true,
            node: Some(self.node.clone()),
            topology: Ok((!self.place.is_empty()).then_some(here)),
            attempt: None,
        }
    }

    /// What takes a claim that was seen.
    fn taken(&self, key: &ClaimKey, seen: &Value) -> Patch {
        let metadata = json!({
            "uid": seen["metadata"]["uid"],
            "resourceVersion": seen["metadata"]["resourceVersion"],
            "annotations": {Annotation::SelectedNode.key(): self.node.as_str()},
        });
        Patch { path: claim_path(key), body: json!({"metadata": metadata}) }
    }
}

/// How long to wait before a try: doubled each time up to a limit, less a chance part of the first.
fn wait(base: Duration, max: Duration, tries: u32, chance: f64) -> Duration {
    let whole = base.saturating_mul(1_u32.checked_shl(tries).unwrap_or(u32::MAX)).min(max);
    whole.saturating_sub(base.mul_f64(chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_differ() {
        let seconds = |tries, chance| wait(Duration::from_secs(20), Duration::from_secs(60), tries, chance).as_secs();
        assert_eq!((seconds(0, 0.0), seconds(0, 0.5), seconds(0, 1.0)), (20, 10, 0));
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (40, 20));
        assert_eq!((seconds(2, 0.0), seconds(40, 0.0), seconds(40, 1.0)), (60, 60, 40));
    }
}
