//! What a provisioner counts, under upstream's names.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bindery_csi::capacity::Counts;
use bindery_csi::{CallObserver, FinishedCall};
use bindery_engine::{Decided, Measured};
use bindery_model::migration::Plugin;
use bindery_rules_api::Timed;
use bindery_runtime::{Leased, Observer, Operated};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::Taken;

/// For calls of a driver, in seconds.
const CALL_BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// For whole volumes, in seconds.
const VOLUME_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// What was counted since the start.
#[derive(Clone)]
pub struct Counted(Arc<Inner>);

struct Inner {
    taken: Taken,
    driver: std::sync::OnceLock<String>,
    calls: Histograms,
    provisions: Tally,
    removals: Tally,
    capacities: Arc<Counts>,
}

/// Successes with how long they took, and failures.
struct Tally {
    done: Counters,
    failed: Counters,
    took: Histograms,
}

impl Default for Tally {
    fn default() -> Tally {
        let took: fn() -> Histogram = || Histogram::new(VOLUME_BUCKETS);
        Tally { done: Family::default(), failed: Family::default(), took: Family::new_with_constructor(took) }
    }
}

impl Counted {
    /// Counts, beside what every program of ours does.
    pub fn new(taken: Taken) -> Counted {
        let calls: fn() -> Histogram = || Histogram::new(CALL_BUCKETS);
        Counted(Arc::new(Inner {
            taken,
            driver: std::sync::OnceLock::new(),
            calls: Family::new_with_constructor(calls),
            provisions: Tally::default(),
            removals: Tally::default(),
            capacities: Arc::default(),
        }))
    }

    /// Where it is noted how many objects tell of room.
    pub fn capacities(&self) -> Arc<Counts> {
        self.0.capacities.clone()
    }

    /// Registers what was counted.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("csi_sidecar_operations_seconds", "How long calls of the driver took", self.0.calls.clone());
        for (name, counted) in
            [("persistentvolumeclaim_provision", &self.0.provisions), ("persistentvolume_delete", &self.0.removals)]
        {
            let name = |end: &str| format!("controller_{name}{end}");
            registry.register(name(""), "Those that were done", counted.done.clone());
            registry.register(name("_failed"), "Those that failed", counted.failed.clone());
            registry.register(name("_duration_seconds"), "How long those took that were done", counted.took.clone());
        }
        let counts = &self.0.capacities;
        for (name, help, count) in [
            ("csistoragecapacities_desired_goal", "Objects that are to tell of room", &counts.goal),
            ("csistoragecapacities_desired_current", "Those that do", &counts.current),
            ("csistoragecapacities_obsolete", "Those that should not any more", &counts.obsolete),
        ] {
            let gauge = Gauge::<i64>::default();
            gauge.set(count.load(Ordering::Relaxed));
            registry.register(name, help, gauge);
        }
    }
}

impl CallObserver for Counted {
    fn identified(&self, driver: &str) {
        // It is told once.
        let _ = self.0.driver.set(driver.to_owned());
    }

    fn finished(&self, called: FinishedCall) {
        let FinishedCall { method, code, took, is_migrated } = called;
        let driver = self.0.driver.get().cloned().unwrap_or_else(|| "unknown-driver".into());
        // Only where there was a plugin can a call be about one of its volumes.
        let migrated = Plugin::of_driver(&driver).map(|_| ("migrated", is_migrated.to_string()));
        let mut labels =
            vec![("driver_name", driver), ("method_name", method.to_owned()), ("grpc_status_code", code.to_owned())];
        labels.extend(migrated);
        self.0.calls.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

impl Observer for Counted {
    fn handled(&self, took: Duration) {
        self.0.taken.handled(took);
    }

    fn decided(&self, decided: Decided) {
        self.0.taken.decided(decided);
    }

    fn measured(&self, measured: &Measured) {
        let (class, source) = measured.plugin.split_once('/').unwrap_or((&measured.plugin, ""));
        let (counted, labels): (_, Labels) = match measured.what {
            Timed::Provision => (&self.0.provisions, vec![("class", class.to_owned()), ("source", source.to_owned())]),
            Timed::Delete => (&self.0.removals, vec![("class", measured.plugin.to_string())]),
        };
        match measured.took {
            Some(took) => {
                counted.done.get_or_create(&labels).inc();
                counted.took.get_or_create(&labels).observe(took.as_secs_f64());
            }
            None => {
                counted.failed.get_or_create(&labels).inc();
            }
        }
    }

    fn operated(&self, operated: &Operated) {
        self.0.taken.operated(operated);
    }

    fn leased(&self, lease: &Leased) {
        self.0.taken.leased(lease);
    }
}
