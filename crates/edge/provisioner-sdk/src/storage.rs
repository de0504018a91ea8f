//! The interface between the provisioning worker and a storage system.

use bindery_rules_api::{Failure, ProvisionRequest};
use futures::future::{BoxFuture, ready};
use serde_json::Value;

/// A request for a volume, with the objects that it refers to as they are now.
#[derive(Debug, Clone, Copy)]
pub struct ProvisionContext<'a> {
    /// The request.
    pub request: &'a ProvisionRequest,
    /// The PersistentVolumeClaim.
    pub claim: &'a Value,
    /// The StorageClass.
    pub class: &'a Value,
}

/// A storage system. Every call may be repeated after a crash or a lost answer, and must then have
/// the effect of a single call.
pub trait Storage: Send + Sync + 'static {
    /// Collects everything needed to create a volume, and creates nothing. The output is passed to
    /// [`Storage::create`].
    fn prepare<'a>(&'a self, context: ProvisionContext<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        let _ = context;
        Box::pin(ready(Ok(Value::Null)))
    }

    /// Creates the storage for a volume under the name in the request. Returns a PersistentVolume
    /// with its capacity, source and node affinity; the worker adds the fields that tie it to its
    /// claim.
    fn create<'a>(
        &'a self,
        context: ProvisionContext<'a>,
        prepared: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Failure>>;

    /// Deletes the backing storage of a PersistentVolume that no claim needs. Storage that does not
    /// exist counts as deleted.
    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>>;
}
