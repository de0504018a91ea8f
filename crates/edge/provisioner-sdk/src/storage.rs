//! What a storage has to be able to do.

use bindery_rules_api::{Failure, ProvisionRequest};
use futures::future::{BoxFuture, ready};
use serde_json::Value;

/// What a storage is asked for: the order, and the objects that it is about, as they are just now.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The order.
    pub order: &'a ProvisionRequest,
    /// The claim.
    pub claim: &'a Value,
    /// Its class.
    pub class: &'a Value,
}

/// A storage. Everything that is asked of it may be asked again, after a crash or because an answer was lost, and must then be
/// done once.
pub trait Storage: Send + Sync + 'static {
    /// Finds out all that is needed to ask for a volume, and makes nothing. What it yields is handed to [`Storage::create`].
    fn prepare<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        let _ = ask;
        Box::pin(ready(Ok(Value::Null)))
    }

    /// Makes the storage of a volume, by the name in the order. Yields the PersistentVolume: its capacity, its source, where it
    /// can be reached from. What ties it to its claim is put in by whoever asks.
    fn create<'a>(&'a self, ask: Ask<'a>, prepared: &'a Value) -> BoxFuture<'a, Result<Value, Failure>>;

    /// Removes what lies behind a PersistentVolume, which nobody has any more. What is gone already is removed.
    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>>;
}
