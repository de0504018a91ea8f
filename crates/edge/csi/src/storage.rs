//! A CSI driver as a storage.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::answer::{self, Unfit};
use crate::delete::{self, Need};
use crate::driver::Driver;
use crate::facts::{Facts, Found};
use crate::look::Look;
use crate::migration;
use crate::path;
use crate::prepare::{self, Prepared, SecretRef, Step, credentials};
use crate::proto::{DeleteVolumeRequest, GetCapacityRequest};
use crate::refusal;
use crate::setup::Setup;
use crate::sweep;
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage};

/// How often it is tried at once to remove a volume that cannot be kept.
const REMOVED_TRIES: usize = 5;

/// Volumes by a CSI driver.
pub struct Csi {
    setup: Setup,
    driver: Driver,
    look: Arc<dyn Look>,
    changed: Arc<Notify>,
}

impl Csi {
    /// A driver, how it is to be used, and who has the objects that are looked at.
    pub fn new(setup: Setup, driver: Driver, look: Arc<dyn Look>) -> Csi {
        Csi { setup, driver, look, changed: Arc::default() }
    }

    /// PublishedEvents whenever there may be more or less room than before.
    pub fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Whether there is room for a claim's volume where the order wants it. What the claim is filled from is of no interest for
    /// that, and nothing of it is guarded.
    pub async fn has_room(&self, ask: ProvisionContext<'_>) -> Result<bool, String> {
        let mut claim = ask.claim.clone();
        for source in ["dataSource", "dataSourceRef"] {
            claim["spec"][source] = Value::Null;
        }
        let prepared =
            self.find_out(ProvisionContext { claim: &claim, ..ask }).await.map_err(|failure| failure.error)?;
        if prepared.required_bytes == 0 {
            return Ok(true);
        }
        let request = prepared.request(BTreeMap::new());
        let mut places: Vec<_> = request.accessibility_requirements.map(|wanted| wanted.requisite).unwrap_or_default();
        places.dedup();
        let places = if places.is_empty() { vec![None] } else { places.into_iter().map(Some).collect() };
        for accessible_topology in places {
            let asked = GetCapacityRequest {
                volume_capabilities: request.volume_capabilities.clone(),
                parameters: request.parameters.clone(),
                accessible_topology,
            };
            let answer = self.driver.get_capacity(asked).await.map_err(|status| refusal::said(&status))?;
            if prepared.required_bytes <= answer.available_capacity {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn find_out(&self, ask: ProvisionContext<'_>) -> Result<Prepared, Failure> {
        let mut facts = Facts::new(&self.setup, ask);
        loop {
            match prepare::next(&facts) {
                Step::Read(path) => {
                    let found = self.look.get(&path).await;
                    facts.read(path, found);
                }
                Step::Write(patch) => {
                    let wrote = self.look.patch(&patch).await;
                    facts.wrote(patch.path, wrote);
                }
                Step::Ready(prepared) => return Ok(*prepared),
                Step::Fail(failure) => return Err(failure),
            }
        }
    }

    async fn make(&self, ask: ProvisionContext<'_>, prepared: &Value) -> Result<Value, Failure> {
        let untried = |error: String| Failure { error, effect: FailureEffect::NotAttempted };
        let prepared: Prepared =
            serde_json::from_value(prepared.clone()).map_err(|error| untried(format!("what was prepared: {error}")))?;
        let secrets = match &prepared.secrets.provisioner {
            Some(secret) => self.read(secret).await.map_err(untried)?,
            None => BTreeMap::new(),
        };
        let may_go_elsewhere = self.setup.abilities.topology && ask.request.node.is_some();
        let driver = self.driver.migrated(migration::plugin_of(&self.setup, ask.class).is_some());
        let answered = driver.create_volume(prepared.request(secrets.clone())).await;
        self.changed.notify_one();
        let answer = answered.map_err(|status| refusal::of_create(&status, may_go_elsewhere))?;
        match answer::volume(&self.setup, ask, &prepared, answer) {
            Ok(volume) => {
                self.release_source(ask).await;
                Ok(volume)
            }
            Err(unfit) => Err(take_back(&driver, &prepared.name, unfit, secrets).await),
        }
    }

    /// The claim is filled: the snapshot that it was filled from need not be kept for it.
    async fn release_source(&self, ask: ProvisionContext<'_>) {
        let source = &ask.claim["spec"]["dataSource"];
        if let (Some("VolumeSnapshot"), Some(name)) = (source["kind"].as_str(), source["name"].as_str()) {
            sweep::release(&*self.look, &ask.request.claim.namespace, name).await;
        }
    }

    async fn remove(&self, volume: &Value) -> Result<(), Failure> {
        let mut class = None;
        let (volume_id, secret) = loop {
            match delete::need(&self.setup, volume, class.as_ref())? {
                Need::Class(path) => class = Some(self.look.get(&path).await),
                Need::Nothing { handle, secret } => break (handle, secret),
            }
        };
        let secrets = match secret {
            None => BTreeMap::new(),
            // The secret may be gone with its namespace. The driver says whether it can do without.
            Some(secret) => self.read(&secret).await.unwrap_or_else(|error| {
                tracing::warn!(volume = volume_id, error, "a volume is removed without its secret");
                BTreeMap::new()
            }),
        };
        let driver = self.driver.migrated(delete::is_migrated(volume));
        let removed = driver.delete_volume(DeleteVolumeRequest { volume_id, secrets }).await;
        self.changed.notify_one();
        removed.map_err(|status| refusal::of_delete(&status))
    }

    /// What a secret holds. It is passed on to the driver, and kept nowhere.
    async fn read(&self, secret: &SecretRef) -> Result<BTreeMap<String, String>, String> {
        let at = path::secret(&secret.namespace, &secret.name)?;
        match self.look.get(&at).await {
            Found::Object(found) => Ok(credentials(&found)),
            Found::Missing(error) | Found::Failed(error) => Err(secret.unreadable(&error)),
        }
    }
}

/// Removes a volume that cannot be kept. Once the driver has said that it is gone, nothing is left of it.
async fn take_back(driver: &Driver, name: &str, unfit: Unfit, secrets: BTreeMap<String, String>) -> Failure {
    let Unfit { error, handle, orphaned } = unfit;
    let Some(volume_id) = handle else { return Failure::unknown(error) };
    match insist(driver, DeleteVolumeRequest { volume_id, secrets }).await {
        Ok(()) => Failure::new(error),
        Err(why) => Failure::unknown(format!("{error}. {orphaned} {name} failed, volume is orphaned: {why}")),
    }
}

/// Tries a few times, in the time of one call.
async fn insist(driver: &Driver, request: DeleteVolumeRequest) -> Result<(), String> {
    let tries = async {
        let mut last = Ok(());
        for _ in 0..REMOVED_TRIES {
            last = driver.delete_volume(request.clone()).await;
            if last.is_ok() {
                break;
            }
        }
        last.map_err(|status| refusal::said(&status))
    };
    let late = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    timeout(driver.timeout(), tries).await.unwrap_or_else(|_| Err(late.into()))
}

impl Storage for Csi {
    fn prepare<'a>(&'a self, ask: ProvisionContext<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let prepared = self.find_out(ask).await?;
            serde_json::to_value(prepared)
                .map_err(|error| Failure { error: error.to_string(), effect: FailureEffect::NotAttempted })
        })
    }

    fn create<'a>(&'a self, ask: ProvisionContext<'a>, prepared: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(self.make(ask, prepared))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.remove(volume))
    }
}

#[cfg(test)]
mod tests;
