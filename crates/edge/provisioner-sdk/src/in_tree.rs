//! The controller's worker: host-path storage and the recycler.

use std::sync::Arc;
use std::time::Instant;

use bindery_rules_api::FailureEffect::{NotAttempted, Stale};
use bindery_rules_api::{Failure, HOST_PATH_PLUGIN, Operation, OperationOutput};
use bindery_runtime::{Api, EventSink, FinishedOperation, Observer, Recycler, RunOperation};
use futures::future::BoxFuture;

use crate::{HostPath, ProvisioningWorker};

/// Runs the operations that the binder requests.
pub struct InTreeWorker {
    host_path: ProvisioningWorker,
    recycler: Recycler,
    observer: Arc<dyn Observer>,
}

impl InTreeWorker {
    /// A worker on this host. The events of recycler pods are published to `events`, and durations
    /// are reported to `observer`.
    pub fn new(api: Arc<Api>, events: EventSink, observer: Arc<dyn Observer>) -> InTreeWorker {
        InTreeWorker {
            host_path: ProvisioningWorker::new(api.clone(), Arc::new(HostPath)),
            recycler: Recycler::new(api, events),
            observer,
        }
    }

    async fn run_timed(&self, operation: Operation) -> Result<OperationOutput, Failure> {
        let (metric, start) = (metric(&operation), Instant::now());
        let outcome = self.host_path.run(operation).await;
        let was_attempted = |failure: &Failure| !matches!(failure.effect, NotAttempted | Stale);
        if let Some(operation) = metric.filter(|_| outcome.as_ref().err().is_none_or(was_attempted)) {
            let (took, succeeded) = (start.elapsed(), outcome.is_ok());
            let finished = FinishedOperation { plugin: HOST_PATH_PLUGIN, operation, took, succeeded };
            self.observer.operation_finished(&finished);
        }
        outcome
    }
}

impl RunOperation for InTreeWorker {
    fn run(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        match operation {
            Operation::Recycle(_) => self.recycler.run(operation),
            Operation::Prepare(_)
            | Operation::CreateStorage(..)
            | Operation::DiscardStorage(..)
            | Operation::DeleteStorage(..) => Box::pin(self.run_timed(operation)),
        }
    }
}

/// The operation's name in upstream's metrics, for the operations that upstream measures.
fn metric(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::CreateStorage(..) => Some("volume_provision"),
        Operation::DeleteStorage(..) => Some("volume_delete"),
        Operation::Prepare(_) | Operation::DiscardStorage(..) | Operation::Recycle(_) => None,
    }
}
