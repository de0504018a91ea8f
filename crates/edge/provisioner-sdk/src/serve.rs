//! Running a provisioner as a program.

use std::sync::Arc;

use bindery_engine::Engine;
use bindery_provisioner::{Config, Provisioner};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, NoObserver, Observer, RunOperation, shutdown_signal};

use crate::{ProvisioningWorker, Storage};

/// Runs a provisioner until the process receives SIGTERM or SIGINT. The cluster is configured as
/// for kubectl. All instances are active, without leader election: this is safe, but each of them
/// may make the same call to the storage.
pub async fn serve(config: Config, storage: impl Storage) -> Result<(), String> {
    let cluster =
        kube::Config::infer().await.map_err(|error| format!("cannot find a cluster to connect to: {error}"))?;
    let api = Arc::new(Api::new(bindery_runtime::client(cluster)?, CALL_DEADLINE, None));
    let engine = Engine::new(bindery_engine::Config::default(), vec![Box::new(Provisioner::new(config))]);
    let observer: Arc<dyn Observer> = Arc::new(NoObserver);
    let worker: Arc<dyn RunOperation> = Arc::new(ProvisioningWorker::new(api.clone(), Arc::new(storage)));
    let mut host = EngineHost::start(&api, engine, &observer, |_| worker);
    host.set_leader(true)?;
    tokio::select! {
        stopped = shutdown_signal() => stopped,
        failure = host.task_failure() => Err(failure),
    }
}
