//! The observer: an interface for metrics.

use std::time::Duration;

use bindery_engine::{Decided, Measured, Rejection};

/// Receives what the runtime does, to count and report it. It must not block.
pub trait Observer: Send + Sync {
    /// The engine handled one input in this time.
    fn handled(&self, took: Duration);
    /// The engine made a decision.
    fn decided(&self, decided: Decided);
    /// A measurement ended, or an attempt failed.
    fn measured(&self, measured: &Measured);
    /// A request was rejected or failed. The engine counts them.
    fn rejected(&self, _rejection: &Rejection) {}
    /// An in-tree operation finished.
    fn operation_finished(&self, finished: &FinishedOperation);
    /// The Lease was read or written.
    fn lease_observed(&self, lease: &LeaseStatus);
}

/// An observer that ignores everything.
pub struct NoObserver;

impl Observer for NoObserver {
    fn handled(&self, _: Duration) {}
    fn decided(&self, _: Decided) {}
    fn measured(&self, _: &Measured) {}
    fn operation_finished(&self, _: &FinishedOperation) {}
    fn lease_observed(&self, _: &LeaseStatus) {}
}

/// A finished in-tree operation.
#[derive(Debug, Clone)]
pub struct FinishedOperation {
    /// The plugin: `kubernetes.io/host-path`.
    pub plugin: &'static str,
    /// The operation's name in metrics: `volume_provision` or `volume_delete`.
    pub operation: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// A Lease as last observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseStatus {
    /// Our own identity.
    pub identity: String,
    /// The holder's identity; empty if it is not held.
    pub holder: String,
    /// When the holder last renewed it, by the holder's clock.
    pub renewed: String,
    /// How often the holder has changed.
    pub transitions: i64,
}
