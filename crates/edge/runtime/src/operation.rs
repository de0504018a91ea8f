//! Operations outside the API server.

use bindery_rules_api::{Failure, Operation, OperationOutput};
use futures::future::BoxFuture;

/// Runs operations for the engine.
pub trait RunOperation: Send + Sync {
    /// Runs an operation to its end and returns the outcome.
    fn run(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>>;
}
