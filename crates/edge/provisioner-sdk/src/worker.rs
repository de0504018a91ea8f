//! The provisioning worker: reads the objects that a storage needs, calls it, and reports to the
//! engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bindery_model::{ClaimKey, Name};
use bindery_rules_api::{Failure, FailureEffect, Operation, OperationOutput, ProvisionRequest, ReleaseProof};
use bindery_runtime::{Api, GetError, Records, RunOperation};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{ProvisionContext, Storage};

/// Runs the operations that provisioning rules request, on a storage.
pub struct ProvisioningWorker {
    api: Arc<Api>,
    storage: Arc<dyn Storage>,
    in_tree: Option<Arc<dyn RunOperation>>,
    records: Option<Records>,
    classes: Mutex<BTreeMap<Name, Arc<Value>>>,
}

/// The most classes that are remembered.
const CLASSES_MAX: usize = 1000;

impl ProvisioningWorker {
    /// A worker for a storage.
    pub fn new(api: Arc<Api>, storage: Arc<dyn Storage>) -> ProvisioningWorker {
        ProvisioningWorker { api, storage, in_tree: None, records: None, classes: Mutex::default() }
    }

    /// Calls the storage only in the recorded attempt.
    #[must_use]
    pub fn with_records(mut self, records: Records) -> ProvisioningWorker {
        self.records = Some(records);
        self
    }

    /// Passes the binder's in-tree operations to another worker, for an engine that hosts both the
    /// binder and a provisioner.
    #[must_use]
    pub fn with_in_tree(mut self, worker: Arc<dyn RunOperation>) -> ProvisioningWorker {
        self.in_tree = Some(worker);
        self
    }

    async fn execute(&self, operation: Operation) -> Result<OperationOutput, Failure> {
        match operation {
            Operation::Prepare(request) => {
                let (claim, class) = self.objects(&request).await?;
                let context = ProvisionContext { request: &request, claim: &claim, class: &class };
                let found = self.storage.prepare(context).await?;
                let found = json!({"claim": recorded_claim(&claim), "class": recorded_class(&class), "storage": found});
                Ok(OperationOutput::of(request.prepared(found)))
            }
            Operation::CreateStorage(request, prepared) if request.attempt.is_some() => {
                self.check_attempt(&request)?;
                let found = &prepared["found"];
                let context = ProvisionContext { request: &request, claim: &found["claim"], class: &found["class"] };
                let volume = self.storage.create(context, &found["storage"]).await?;
                Ok(OperationOutput::of(request.complete(volume)))
            }
            Operation::CreateStorage(request, prepared) => {
                let (claim, class) = self.objects(&request).await?;
                let context = ProvisionContext { request: &request, claim: &claim, class: &class };
                let volume = self.storage.create(context, &prepared["found"]).await?;
                Ok(OperationOutput::of(request.complete(volume)))
            }
            Operation::DiscardStorage(_, volume) => {
                self.storage.delete(&volume).await.map(|()| OperationOutput::default())
            }
            Operation::DeleteStorage(proof, _) => self.delete(&proof).await.map(|()| OperationOutput::default()),
            Operation::Recycle(_) => Err(Failure::new("this worker does not recycle volumes")),
        }
    }

    /// Checks that the request's attempt is still the latest one. If not, another instance has
    /// called the storage since, or knows the outcome.
    fn check_attempt(&self, request: &ProvisionRequest) -> Result<(), Failure> {
        let current = self.records.as_ref().and_then(|records| records.attempt(&request.uid));
        if self.records.is_none() || current == request.attempt {
            return Ok(());
        }
        let error = format!("a later attempt to provision {} is recorded", request.volume);
        Err(Failure::new(error).with(FailureEffect::Stale))
    }

    /// The claim of a request and its class: no older than the rules have seen them. They are read
    /// live unless the watch has delivered them.
    async fn objects(&self, request: &ProvisionRequest) -> Result<(Value, Value), Failure> {
        let not_attempted = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let stale = |error: String| Failure::new(error).with(FailureEffect::Stale);
        let pending = self.records.as_ref().map(Records::pending_claims);
        let claim = match pending.and_then(|pending| pending.get(&request.claim, &request.uid, request.version)) {
            Some(claim) => (*claim).clone(),
            None => match self.api.get(&claim_path(&request.claim)).await {
                Ok(claim) => claim,
                Err(GetError::NotFound(error)) => return Err(stale(error)),
                Err(GetError::Rejected(_, error) | GetError::Lost(error)) => return Err(not_attempted(error)),
            },
        };
        if claim["metadata"]["uid"] != *request.uid.as_str() {
            return Err(stale(format!("claim {} was deleted and created again", request.claim)));
        }
        let class = self.class(request).await.map_err(|error| not_attempted(error.to_string()))?;
        Ok((claim, class))
    }

    /// The class of a request. It is read once for each version.
    async fn class(&self, request: &ProvisionRequest) -> Result<Value, GetError> {
        let classes = || self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = classes().get(&request.class).cloned();
        let is_current = |class: &Arc<Value>| request.class_version > 0 && version(class) >= request.class_version;
        if let Some(class) = known.filter(is_current) {
            return Ok((*class).clone());
        }
        let class = self.api.get(&class_path(&request.class)).await?;
        let mut classes = classes();
        if classes.len() >= CLASSES_MAX {
            classes.clear();
        }
        classes.insert(request.class.clone(), Arc::new(class.clone()));
        Ok(class)
    }

    /// Deletes the backing storage of a volume, if it has not changed since it was proven released.
    async fn delete(&self, proof: &ReleaseProof) -> Result<(), Failure> {
        let not_attempted = |error: String| Failure::new(error).with(FailureEffect::NotAttempted);
        let proven = proof.volume();
        let volume =
            self.api.get(&volume_path(&proven.name)).await.map_err(|error| not_attempted(error.to_string()))?;
        let metadata = &volume["metadata"];
        if metadata["uid"] != *proven.uid.as_str() || metadata["resourceVersion"] != *proven.version.to_string() {
            return Err(not_attempted(format!("volume {} has changed since it was read", proven.name)));
        }
        self.storage.delete(&volume).await
    }
}

impl RunOperation for ProvisioningWorker {
    fn run(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        if let Some(in_tree) = self.in_tree.as_ref().filter(|_| operation.is_in_tree()) {
            return in_tree.run(operation);
        }
        Box::pin(async move {
            let name = operation.name();
            tracing::info!(operation = name, "operation started");
            let outcome = self.execute(operation).await;
            match &outcome {
                Ok(_) => tracing::info!(operation = name, "operation succeeded"),
                Err(failure) => {
                    tracing::warn!(operation = name, error = failure.error, effect = ?failure.effect, "operation failed");
                }
            }
            outcome
        })
    }
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// What is recorded of a claim: everything that describes the volume, and no annotations, which may
/// be large.
fn recorded_claim(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    json!({
        "metadata": {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
        "spec": claim["spec"],
    })
}

/// What is recorded of a StorageClass.
fn recorded_class(class: &Value) -> Value {
    let mut class = class.clone();
    class["metadata"] = json!({"name": class["metadata"]["name"]});
    class
}

/// The API path of a claim.
pub fn claim_path(claim: &ClaimKey) -> String {
    format!("/api/v1/namespaces/{}/persistentvolumeclaims/{}", claim.namespace, claim.name)
}

/// The API path of a StorageClass.
pub fn class_path(class: &Name) -> String {
    format!("/apis/storage.k8s.io/v1/storageclasses/{class}")
}

/// The API path of a PersistentVolume.
pub fn volume_path(volume: &Name) -> String {
    format!("/api/v1/persistentvolumes/{volume}")
}
