//! Running a provisioner of one's own, without more ado.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Decided, Engine, Measured};
use bindery_provisioner::{Config, Provisioner};
use bindery_runtime::{Api, CALL_DEADLINE, Hosted, Leased, Observer, Operate, Operated, told_to_stop};

use crate::{Storage, Storekeeper};

/// Counts nothing: a small provisioner's logs tell enough.
struct Nobody;

impl Observer for Nobody {
    fn handled(&self, _: Duration) {}
    fn decided(&self, _: Decided) {}
    fn measured(&self, _: &Measured) {}
    fn operated(&self, _: &Operated) {}
    fn leased(&self, _: &Leased) {}
}

/// Serves the claims that ask for a provisioner of that name from a storage, until the process is told to stop. How to reach the
/// API server is found out as kubectl does. Of several instances all act: no promise rests on there being one, though a storage
/// may be asked for the same by each of them.
pub async fn serve(config: Config, storage: impl Storage) -> Result<(), String> {
    let cluster = kube::Config::infer().await.map_err(|error| format!("no API server is known: {error}"))?;
    let api = Arc::new(Api::new(bindery_runtime::client(cluster)?, CALL_DEADLINE, None));
    let engine = Engine::new(bindery_engine::Config::default(), vec![Box::new(Provisioner::new(config))]);
    let observer: Arc<dyn Observer> = Arc::new(Nobody);
    let keeper: Arc<dyn Operate> = Arc::new(Storekeeper::new(api.clone(), Arc::new(storage)));
    let mut hosted = Hosted::start_with(&api, engine, &observer, |_| keeper);
    hosted.lead(true)?;
    tokio::select! {
        stopped = told_to_stop() => stopped,
        failed = hosted.failed() => Err(failed),
    }
}
