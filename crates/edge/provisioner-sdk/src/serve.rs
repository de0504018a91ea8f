//! Running a provisioner as a program.

use std::sync::Arc;

use bindery_engine::Engine;
use bindery_provisioner::{Config, Provisioner};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, NoObserver, Observer, Records, RunOperation, shutdown_signal};

use crate::{ProvisioningWorker, Storage};

/// Runs a provisioner until the process receives SIGTERM or SIGINT. The cluster is configured as
/// for kubectl; what is being provisioned is recorded in ConfigMaps of its namespace. All instances
/// are active, without leader election: this is safe, but each of them may make the same call to
/// the storage.
pub async fn serve(config: Config, storage: impl Storage) -> Result<(), String> {
    let cluster =
        kube::Config::infer().await.map_err(|error| format!("cannot find a cluster to connect to: {error}"))?;
    let namespace = cluster.default_namespace.clone();
    let api = Arc::new(Api::new(bindery_runtime::client(cluster)?, CALL_DEADLINE, None));
    let (records, record_task) = Records::new(api.clone(), &namespace, &config.name);
    let engine = Engine::new(bindery_engine::Config::default(), vec![Box::new(Provisioner::new(config))]);
    let observer: Arc<dyn Observer> = Arc::new(NoObserver);
    let worker = ProvisioningWorker::new(api.clone(), Arc::new(storage)).with_records(records.clone());
    let worker: Arc<dyn RunOperation> = Arc::new(worker);
    let mut host = EngineHost::start_with_records(&api, engine, &observer, |_| worker, Some((records, record_task)));
    host.set_leader(true)?;
    tokio::select! {
        stopped = shutdown_signal() => stopped,
        failure = host.task_failure() => Err(failure),
    }
}
