//! The storekeeper: hands a storage what it needs to know, read live, and answers the engine.

use std::sync::Arc;

use bindery_model::{ClaimKey, Name};
use bindery_rules_api::{Failure, FailureEffect, Operation, OperationOutput, ProvisionRequest, ReleaseProof};
use bindery_runtime::{Api, GetError, RunOperation};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Ask, Storage};

/// Does what a provisioner's rules order, with a storage.
pub struct ProvisioningWorker {
    api: Arc<Api>,
    storage: Arc<dyn Storage>,
    others: Option<Arc<dyn RunOperation>>,
}

impl ProvisioningWorker {
    /// A storekeeper of a storage, on an API server.
    pub fn new(api: Arc<Api>, storage: Arc<dyn Storage>) -> ProvisioningWorker {
        ProvisioningWorker { api, storage, others: None }
    }

    /// The same, beside somebody who does what is not for a storage to do.
    #[must_use]
    pub fn beside(mut self, others: Arc<dyn RunOperation>) -> ProvisioningWorker {
        self.others = Some(others);
        self
    }

    async fn carry_out(&self, operation: Operation) -> Result<OperationOutput, Failure> {
        match operation {
            Operation::Prepare(order) => {
                let (claim, class) = self.objects(&order).await?;
                let ask = Ask { order: &order, claim: &claim, class: &class };
                let found = self.storage.prepare(ask).await?;
                Ok(OperationOutput::of(order.prepared(found)))
            }
            Operation::Make(order, prepared) => {
                let (claim, class) = self.objects(&order).await?;
                if !order.is_intended(&claim) {
                    let error = format!("somebody else has asked for {}, or knows what there is", order.volume);
                    return Err(Failure::new(error).with(FailureEffect::Untried));
                }
                let ask = Ask { order: &order, claim: &claim, class: &class };
                let made = self.storage.create(ask, &prepared["found"]).await?;
                Ok(OperationOutput::of(order.complete(made)))
            }
            Operation::Unmake(_, made) => self.storage.delete(&made).await.map(|()| OperationOutput::default()),
            Operation::Remove(proof) => self.remove(&proof).await.map(|()| OperationOutput::default()),
            Operation::Provision(_)
            | Operation::CleanUp(_)
            | Operation::DeleteStorage { .. }
            | Operation::Recycle(_) => match &self.others {
                Some(others) => others.operate(operation).await,
                None => Err(Failure::new("this is not for a storage to do")),
            },
        }
    }

    /// The claim of an order and its class, as they are now.
    async fn objects(&self, order: &ProvisionRequest) -> Result<(Value, Value), Failure> {
        let untried = |error: String| Failure::new(error).with(FailureEffect::Untried);
        let stale = |error: String| Failure::new(error).with(FailureEffect::Stale);
        let claim = match self.api.get(&claim_path(&order.claim)).await {
            Ok(claim) => claim,
            Err(GetError::NotFound(error)) => return Err(stale(error)),
            Err(GetError::Refused(_, error) | GetError::Lost(error)) => return Err(untried(error)),
        };
        if claim["metadata"]["uid"] != *order.uid.as_str() {
            return Err(stale(format!("{} is another claim by now", order.claim)));
        }
        let class = self.api.get(&class_path(&order.class)).await.map_err(|error| untried(error.to_string()))?;
        Ok((claim, class))
    }

    /// Removes what lies behind a volume, if it still is as it was when nobody was found to have it.
    async fn remove(&self, proof: &ReleaseProof) -> Result<(), Failure> {
        let seen = proof.volume();
        let volume = match self.api.get(&volume_path(&seen.name)).await {
            Ok(volume) => volume,
            Err(GetError::NotFound(error) | GetError::Refused(_, error) | GetError::Lost(error)) => {
                return Err(Failure::new(error).with(FailureEffect::Untried));
            }
        };
        let metadata = &volume["metadata"];
        if metadata["uid"] != *seen.uid.as_str() || metadata["resourceVersion"] != *seen.version.to_string() {
            return Err(Failure::new("the volume has changed since it was found released").with(FailureEffect::Untried));
        }
        self.storage.delete(&volume).await
    }
}

impl RunOperation for ProvisioningWorker {
    fn operate(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        Box::pin(async move {
            let name = operation.name();
            tracing::info!(operation = name, "begins");
            let outcome = self.carry_out(operation).await;
            match &outcome {
                Ok(_) => tracing::info!(operation = name, "is done"),
                Err(failure) => {
                    tracing::warn!(operation = name, error = failure.error, after = ?failure.after, "failed")
                }
            }
            outcome
        })
    }
}

/// Where a claim is.
pub fn claim_path(claim: &ClaimKey) -> String {
    format!("/api/v1/namespaces/{}/persistentvolumeclaims/{}", claim.namespace, claim.name)
}

/// Where a class is.
pub fn class_path(class: &Name) -> String {
    format!("/apis/storage.k8s.io/v1/storageclasses/{class}")
}

/// Where a volume is.
pub fn volume_path(volume: &Name) -> String {
    format!("/api/v1/persistentvolumes/{volume}")
}
