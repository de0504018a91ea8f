//! A CSI driver as a [`Storage`].

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use crate::capacity::CapacityChanges;
use crate::delete::{self, DeleteStep};
use crate::driver::Driver;
use crate::facts::{Facts, ReadResult};
use crate::grpc_status;
use crate::migration;
use crate::objects::ObjectClient;
use crate::path;
use crate::prepare::{self, Prepared, SecretRef, Step, credentials};
use crate::proto::{DeleteVolumeRequest, GetCapacityRequest};
use crate::setup::Setup;
use crate::snapshot_finalizers;
use crate::volume::{self, UnusableVolume};
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage};
use bindery_runtime::Records;

/// How often deleting an unusable volume is attempted.
const DELETE_ATTEMPTS: usize = 5;

/// Provisions volumes with a CSI driver.
pub struct Csi {
    setup: Setup,
    driver: Driver,
    objects: Arc<dyn ObjectClient>,
    changes: Arc<CapacityChanges>,
    records: Option<Records>,
}

impl Csi {
    /// Uses `driver` as `setup` says, and reads objects through `objects`.
    pub fn new(setup: Setup, driver: Driver, objects: Arc<dyn ObjectClient>) -> Csi {
        Csi { setup, driver, objects, changes: Arc::default(), records: None }
    }

    /// Data sources of recorded requests stay protected.
    #[must_use]
    pub fn with_records(mut self, records: Records) -> Csi {
        self.records = Some(records);
        self
    }

    /// What may have changed the available capacity.
    pub fn changes(&self) -> Arc<CapacityChanges> {
        self.changes.clone()
    }

    /// Whether the driver has enough capacity for a claim in the requested topology. Data sources
    /// are ignored, and get no finalizer.
    pub async fn has_capacity(&self, ask: ProvisionContext<'_>) -> Result<bool, String> {
        let mut claim = ask.claim.clone();
        for source in ["dataSource", "dataSourceRef"] {
            claim["spec"][source] = Value::Null;
        }
        let prepared =
            self.prepare_request(ProvisionContext { claim: &claim, ..ask }).await.map_err(|failure| failure.error)?;
        if prepared.required_bytes == 0 {
            return Ok(true);
        }
        let request = prepared.request(BTreeMap::new());
        let mut segments: Vec<_> =
            request.accessibility_requirements.map(|wanted| wanted.requisite).unwrap_or_default();
        segments.dedup();
        let segments = if segments.is_empty() { vec![None] } else { segments.into_iter().map(Some).collect() };
        for accessible_topology in segments {
            let request_capacity = GetCapacityRequest {
                volume_capabilities: request.volume_capabilities.clone(),
                parameters: request.parameters.clone(),
                accessible_topology,
            };
            let response =
                self.driver.get_capacity(request_capacity).await.map_err(|status| grpc_status::message(&status))?;
            if prepared.required_bytes <= response.available_capacity {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn prepare_request(&self, ask: ProvisionContext<'_>) -> Result<Prepared, Failure> {
        let mut facts = Facts::new(&self.setup, ask);
        loop {
            match prepare::next(&facts) {
                Step::Read(path) => {
                    let found = self.objects.get(&path).await;
                    facts.record_read(path, found);
                }
                Step::Write(patch) => {
                    let wrote = self.objects.patch(&patch).await;
                    facts.record_write(patch.path, wrote);
                }
                Step::Ready(prepared) => return Ok(*prepared),
                Step::Fail(failure) => return Err(failure),
            }
        }
    }

    async fn create_volume(&self, ask: ProvisionContext<'_>, prepared: &Value) -> Result<Value, Failure> {
        let untried = |error: String| Failure { error, effect: FailureEffect::NotAttempted };
        let prepared: Prepared = serde_json::from_value(prepared.clone())
            .map_err(|error| untried(format!("cannot decode the prepared request: {error}")))?;
        let secrets = match &prepared.secrets.provisioner {
            Some(secret) => self.read(secret).await.map_err(untried)?,
            None => BTreeMap::new(),
        };
        let other_node_possible = self.setup.capabilities.topology && ask.request.node.is_some();
        let driver = self.driver.migrated(migration::plugin_of(&self.setup, ask.class).is_some());
        let result = driver.create_volume(prepared.request(secrets.clone())).await;
        let response = result.map_err(|status| grpc_status::create_failure(&status, other_node_possible))?;
        match volume::from_response(&self.setup, ask, &prepared, response) {
            Ok(volume) => {
                self.release_snapshot(ask).await;
                Ok(volume)
            }
            Err(unusable) => Err(delete_unusable(&driver, &prepared.name, unusable, secrets).await),
        }
    }

    /// Removes the finalizer from the snapshot that the claim was restored from, unless another
    /// claim is being restored from it. From another namespace, the next sweep does it.
    async fn release_snapshot(&self, ask: ProvisionContext<'_>) {
        let source = &ask.claim["spec"]["dataSource"];
        if let (Some("VolumeSnapshot"), Some(name)) = (source["kind"].as_str(), source["name"].as_str())
            && !self.setup.cross_namespace
        {
            let recorded = self.records.as_ref().map(snapshot_finalizers::recorded_claims).unwrap_or_default();
            let namespace = &ask.request.claim.namespace;
            snapshot_finalizers::remove_from(&*self.objects, namespace, name, &ask.request.uid, &recorded).await;
        }
    }

    async fn delete_volume(&self, volume: &Value) -> Result<(), Failure> {
        let mut class = None;
        let (volume_id, secret) = loop {
            match delete::next_step(&self.setup, volume, class.as_ref())? {
                DeleteStep::ReadClass(path) => class = Some(self.objects.get(&path).await),
                DeleteStep::Ready { handle, secret } => break (handle, secret),
            }
        };
        let secrets = match secret {
            None => BTreeMap::new(),
            // The secret may have been deleted with its namespace. The driver decides whether it
            // needs it.
            Some(secret) => self.read(&secret).await.unwrap_or_else(|error| {
                tracing::warn!(volume = volume_id, error, "deleting volume without its secret");
                BTreeMap::new()
            }),
        };
        let driver = self.driver.migrated(delete::is_migrated(volume));
        let removed = driver.delete_volume(DeleteVolumeRequest { volume_id, secrets }).await;
        self.changes.deleted(volume);
        removed.map_err(|status| grpc_status::delete_failure(&status))
    }

    /// The data of a secret. It is passed to the driver, and not stored.
    async fn read(&self, secret: &SecretRef) -> Result<BTreeMap<String, String>, String> {
        let at = path::secret(&secret.namespace, &secret.name)?;
        match self.objects.get(&at).await {
            ReadResult::Object(found) => Ok(credentials(&found)),
            ReadResult::Missing(error) | ReadResult::Failed(error) => Err(secret.unreadable(&error)),
        }
    }
}

/// Deletes an unusable volume. After success it is certain that no volume is left.
async fn delete_unusable(
    driver: &Driver,
    name: &str,
    unusable: UnusableVolume,
    secrets: BTreeMap<String, String>,
) -> Failure {
    let UnusableVolume { error, handle, orphaned } = unusable;
    let Some(volume_id) = handle else { return Failure::unknown(error) };
    match delete_with_retries(driver, DeleteVolumeRequest { volume_id, secrets }).await {
        Ok(()) => Failure::new(error).with(FailureEffect::Absent),
        Err(why) => Failure::unknown(format!("{error}. {orphaned} {name} failed, volume is orphaned: {why}")),
    }
}

/// Tries several times within the deadline of one call.
async fn delete_with_retries(driver: &Driver, request: DeleteVolumeRequest) -> Result<(), String> {
    let attempts = async {
        let mut last = Ok(());
        for _ in 0..DELETE_ATTEMPTS {
            last = driver.delete_volume(request.clone()).await;
            if last.is_ok() {
                break;
            }
        }
        last.map_err(|status| grpc_status::message(&status))
    };
    let late = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    timeout(driver.timeout(), attempts).await.unwrap_or_else(|_| Err(late.into()))
}

impl Storage for Csi {
    fn prepare<'a>(&'a self, ask: ProvisionContext<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let prepared = self.prepare_request(ask).await?;
            serde_json::to_value(prepared)
                .map_err(|error| Failure { error: error.to_string(), effect: FailureEffect::NotAttempted })
        })
    }

    fn create<'a>(&'a self, ask: ProvisionContext<'a>, prepared: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let created = self.create_volume(ask, prepared).await;
            let is_called = created.as_ref().err().is_none_or(|failure| failure.effect != FailureEffect::NotAttempted);
            if is_called {
                self.changes.created(&ask.request.class, created.as_ref().ok());
            }
            created
        })
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.delete_volume(volume))
    }
}

#[cfg(test)]
mod tests;
