//! Running a provisioner of one's own, without more ado.

use std::sync::Arc;

use bindery_engine::Engine;
use bindery_provisioner::{Config, Provisioner};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, NoObserver, Observer, RunOperation, shutdown_signal};

use crate::{ProvisioningWorker, Storage};

/// Serves the claims that ask for a provisioner of that name from a storage, until the process is told to stop. How to reach the
/// API server is found out as kubectl does. Of several instances all act: no promise rests on there being one, though a storage
/// may be asked for the same by each of them.
pub async fn serve(config: Config, storage: impl Storage) -> Result<(), String> {
    let cluster = kube::Config::infer().await.map_err(|error| format!("no API server is known: {error}"))?;
    let api = Arc::new(Api::new(bindery_runtime::client(cluster)?, CALL_DEADLINE, None));
    let engine = Engine::new(bindery_engine::Config::default(), vec![Box::new(Provisioner::new(config))]);
    let observer: Arc<dyn Observer> = Arc::new(NoObserver);
    let keeper: Arc<dyn RunOperation> = Arc::new(ProvisioningWorker::new(api.clone(), Arc::new(storage)));
    let mut hosted = EngineHost::start_with(&api, engine, &observer, |_| keeper);
    hosted.lead(true)?;
    tokio::select! {
        stopped = shutdown_signal() => stopped,
        failed = hosted.failed() => Err(failed),
    }
}
