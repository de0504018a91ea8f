//! Metrics of the CSI provisioner, under csi-provisioner's names.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindery_csi::capacity::Counts;
use bindery_csi::{CallObserver, FinishedCall, TouchedClaims};
use bindery_engine::{Decided, Measured, Rejection};
use bindery_model::Kind;
use bindery_model::migration::Plugin;
use bindery_rules_api::Timed;
use bindery_runtime::{FinishedOperation, LeaseStatus, Observer};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::{Labels, Recorder};

/// Buckets for driver calls, in seconds.
const CALL_BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// Buckets for provisioning or deleting a volume, in seconds.
const VOLUME_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

type Counters = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Counters since the start, in addition to those of every program.
#[derive(Clone)]
pub struct CsiMetrics(Arc<Inner>);

struct Inner {
    recorder: Recorder,
    driver: OnceLock<String>,
    calls: Histograms,
    provisions: Tally,
    deletions: Tally,
    capacities: Arc<Counts>,
    /// Set if claims are assigned to this node.
    touched_claims: OnceLock<Arc<TouchedClaims>>,
}

/// Successes with their durations, and failures.
struct Tally {
    succeeded: Counters,
    failed: Counters,
    seconds: Histograms,
}

impl Default for Tally {
    fn default() -> Tally {
        let seconds: fn() -> Histogram = || Histogram::new(VOLUME_BUCKETS);
        Tally {
            succeeded: Family::default(),
            failed: Family::default(),
            seconds: Family::new_with_constructor(seconds),
        }
    }
}

impl CsiMetrics {
    /// Forwards to the recorder what every program records.
    pub fn new(recorder: Recorder) -> CsiMetrics {
        let calls: fn() -> Histogram = || Histogram::new(CALL_BUCKETS);
        CsiMetrics(Arc::new(Inner {
            recorder,
            driver: OnceLock::new(),
            calls: Family::new_with_constructor(calls),
            provisions: Tally::default(),
            deletions: Tally::default(),
            capacities: Arc::default(),
            touched_claims: OnceLock::new(),
        }))
    }

    /// Adds every claim that the engine decides about to `touched`.
    pub fn report_claims(&self, touched: Arc<TouchedClaims>) {
        // A second call would set the same.
        let _ = self.0.touched_claims.set(touched);
    }

    /// Counters of CSIStorageCapacity objects, which their publisher updates.
    pub fn capacities(&self) -> Arc<Counts> {
        self.0.capacities.clone()
    }

    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("csi_sidecar_operations_seconds", "Time of driver calls", self.0.calls.clone());
        for (name, tally) in
            [("persistentvolumeclaim_provision", &self.0.provisions), ("persistentvolume_delete", &self.0.deletions)]
        {
            let name = |end: &str| format!("controller_{name}{end}");
            registry.register(name(""), "Successful operations", tally.succeeded.clone());
            registry.register(name("_failed"), "Failed operations", tally.failed.clone());
            registry.register(name("_duration_seconds"), "Time of successful operations", tally.seconds.clone());
        }
        let counts = &self.0.capacities;
        for (name, help, count) in [
            ("csistoragecapacities_desired_goal", "CSIStorageCapacity objects that should exist", &counts.goal),
            (
                "csistoragecapacities_desired_current",
                "CSIStorageCapacity objects that should exist and do",
                &counts.current,
            ),
            ("csistoragecapacities_obsolete", "CSIStorageCapacity objects that should be deleted", &counts.obsolete),
        ] {
            let gauge = Gauge::<i64>::default();
            gauge.set(count.load(Ordering::Relaxed));
            registry.register(name, help, gauge);
        }
    }
}

impl CallObserver for CsiMetrics {
    fn identified(&self, driver: &str) {
        // Set once, when the driver is first connected.
        let _ = self.0.driver.set(driver.to_owned());
    }

    fn finished(&self, called: FinishedCall) {
        let FinishedCall { method, code, took, is_migrated } = called;
        let driver = self.0.driver.get().cloned().unwrap_or_else(|| "unknown-driver".into());
        // csi-provisioner has this label only for drivers that replace an in-tree plugin.
        let migrated = Plugin::of_driver(&driver).map(|_| ("migrated", is_migrated.to_string()));
        let mut labels =
            vec![("driver_name", driver), ("method_name", method.to_owned()), ("grpc_status_code", code.to_owned())];
        labels.extend(migrated);
        self.0.calls.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

impl Observer for CsiMetrics {
    fn handled(&self, took: Duration) {
        self.0.recorder.handled(took);
    }

    fn decided(&self, decided: Decided) {
        if let Some(touched) = self.0.touched_claims.get().filter(|_| decided.key.kind == Kind::Claim) {
            touched.add(decided.key.claim_key());
        }
        self.0.recorder.decided(decided);
    }

    fn measured(&self, measured: &Measured) {
        let (class, source) = measured.plugin.split_once('/').unwrap_or((&measured.plugin, ""));
        let (tally, labels): (_, Labels) = match measured.what {
            Timed::Provision => (&self.0.provisions, vec![("class", class.to_owned()), ("source", source.to_owned())]),
            Timed::Delete => (&self.0.deletions, vec![("class", measured.plugin.to_string())]),
        };
        match measured.took {
            Some(took) => {
                tally.succeeded.get_or_create(&labels).inc();
                tally.seconds.get_or_create(&labels).observe(took.as_secs_f64());
            }
            None => {
                tally.failed.get_or_create(&labels).inc();
            }
        }
    }

    fn rejected(&self, rejection: &Rejection) {
        self.0.recorder.rejected(rejection);
    }

    fn operation_finished(&self, operated: &FinishedOperation) {
        self.0.recorder.operation_finished(operated);
    }

    fn lease_observed(&self, lease: &LeaseStatus) {
        self.0.recorder.lease_observed(lease);
    }
}
