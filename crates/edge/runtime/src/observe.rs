//! Whoever counts what goes on.

use std::time::Duration;

use bindery_engine::{Decided, Measured};

/// Hears what goes on, to count it and to tell of it. Nothing waits for it, and nothing depends on it.
pub trait Observer: Send + Sync {
    /// Something was taken in and decided about, and it took so long.
    fn handled(&self, took: Duration);
    /// A decision was made.
    fn decided(&self, decided: Decided);
    /// Something that was measured came to an end, or failed.
    fn measured(&self, measured: &Measured);
    /// An operation outside the API is over.
    fn operated(&self, operated: &Operated);
    /// The lease was looked at, or written.
    fn leased(&self, lease: &Leased);
}

/// Somebody who counts nothing, for where logs tell enough.
pub struct NoObserver;

impl Observer for NoObserver {
    fn handled(&self, _: Duration) {}
    fn decided(&self, _: Decided) {}
    fn measured(&self, _: &Measured) {}
    fn operated(&self, _: &Operated) {}
    fn leased(&self, _: &Leased) {}
}

/// An operation outside the API, when it is over.
#[derive(Debug, Clone)]
pub struct Operated {
    /// Who did it: `kubernetes.io/host-path`.
    pub plugin: &'static str,
    /// What: `volume_provision` or `volume_delete`.
    pub operation: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// A lease, as it was last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leased {
    /// Who we are.
    pub identity: String,
    /// Who holds it; nobody when empty.
    pub holder: String,
    /// When the holder last renewed it, by the holder's clock.
    pub renewed: String,
    /// How often it changed hands.
    pub transitions: i64,
}
