//! What is heard from the runtime since the start, kept for whoever asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_engine::{Decided, Measured};
use bindery_model::ObjectKey;
use bindery_rules_api::Timed;
use bindery_runtime::{FinishedOperation, LeaseStatus, Observer};
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::Labels;

/// Upstream's buckets for whole operations, in seconds.
const OPERATION_BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// Deciding takes microseconds: up to a tenth of a second, for a list of everything.
const DECISION_BUCKETS: [f64; 9] = [1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// How many decisions are remembered: some minutes' worth on a busy cluster, in less than a mebibyte.
const REMEMBERED: usize = 2048;

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// What was heard since the start.
#[derive(Clone)]
pub struct Taken(Arc<Inner>);

struct Inner {
    whole: Histograms,
    errors: Family<Labels, Counter>,
    calls: Histograms,
    decisions: Histogram,
    lease: Mutex<Option<LeaseStatus>>,
    recent: Mutex<VecDeque<(Timestamp, Decided)>>,
}

impl Default for Taken {
    fn default() -> Taken {
        let operations: fn() -> Histogram = || Histogram::new(OPERATION_BUCKETS);
        Taken(Arc::new(Inner {
            whole: Family::new_with_constructor(operations),
            errors: Family::default(),
            calls: Family::new_with_constructor(operations),
            decisions: Histogram::new(DECISION_BUCKETS),
            lease: Mutex::default(),
            recent: Mutex::default(),
        }))
    }
}

impl Taken {
    /// Registers what was measured.
    pub fn register(&self, registry: &mut Registry) {
        let inner = &self.0;
        registry.register("volume_operation_total_seconds", "How long whole operations took", inner.whole.clone());
        registry.register("volume_operation_errors", "Operations that failed", inner.errors.clone());
        registry.register("storage_operation_duration_seconds", "How long calls of a plugin took", inner.calls.clone());
        registry.register("bindery_decision_seconds", "How long deciding took", inner.decisions.clone());
    }

    /// Registers who leads, where there is an election by a lease of this name.
    pub fn register_lease(&self, name: &str, registry: &mut Registry) {
        let status = Family::<Labels, Gauge>::default();
        let leads = self.lease().is_some_and(|lease| lease.holder == lease.identity);
        status.get_or_create(&vec![("name", name.to_owned())]).set(leads.into());
        registry.register("leader_election_master_status", "Whether this instance leads", status);
    }

    /// The lease as it was last seen.
    pub fn lease(&self) -> Option<LeaseStatus> {
        self.0.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last decisions that are remembered, oldest first: all, or those about an object.
    pub fn recent(&self, of: Option<&ObjectKey>) -> Vec<Value> {
        let recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = recent.iter().filter(|(_, decided)| of.is_none_or(|key| *key == decided.key));
        wanted
            .map(|(at, decided)| {
                json!({
                    "at": at.to_string(),
                    "controller": decided.set,
                    "key": decided.key.to_string(),
                    "rule": decided.rule.name,
                    "step": decided.step.map(|step| step.name),
                    "note": decided.note,
                })
            })
            .collect()
    }
}

impl Observer for Taken {
    fn handled(&self, took: Duration) {
        self.0.decisions.observe(took.as_secs_f64());
    }

    fn decided(&self, decided: Decided) {
        let mut recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back((Timestamp::now(), decided));
    }

    fn measured(&self, measured: &Measured) {
        let operation = match measured.what {
            Timed::Provision => "provision",
            Timed::Delete => "delete",
        };
        let labels = vec![("plugin_name", measured.plugin.to_string()), ("operation_name", operation.to_owned())];
        match measured.took {
            Some(took) => self.0.whole.get_or_create(&labels).observe(took.as_secs_f64()),
            None => {
                self.0.errors.get_or_create(&labels).inc();
            }
        }
    }

    fn operation_finished(&self, operated: &FinishedOperation) {
        let status = if operated.succeeded { "success" } else { "fail-unknown" };
        let labels = vec![
            ("volume_plugin", operated.plugin.to_owned()),
            ("operation_name", operated.operation.to_owned()),
            ("status", status.to_owned()),
            ("migrated", "false".to_owned()),
        ];
        self.0.calls.get_or_create(&labels).observe(operated.took.as_secs_f64());
    }

    fn lease_observed(&self, lease: &LeaseStatus) {
        *self.0.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease.clone());
    }
}
