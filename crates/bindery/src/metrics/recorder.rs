//! Records what the runtime reports: measurements, the last decisions, and the lease.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindery_engine::{Decided, Measured, Rejection};
use bindery_model::ObjectKey;
use bindery_rules_api::Timed;
use bindery_runtime::{FinishedOperation, LeaseStatus, Observer, PermissionStatus};
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
/// Deciding takes microseconds; up to a tenth of a second after an initial list.
const DECISION_BUCKETS: [f64; 9] = [1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2, 1e-1];
/// How many decisions are kept: a few minutes' worth on a busy cluster, in less than a mebibyte.
const DECISIONS_KEPT: usize = 2048;

/// The HTTP status of a missing permission.
const FORBIDDEN: u16 = 403;

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// What was reported since the start.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    operation_seconds: Histograms,
    operation_errors: Family<Labels, Counter>,
    plugin_call_seconds: Histograms,
    decision_seconds: Histogram,
    lease: Mutex<Option<LeaseStatus>>,
    decisions: Mutex<VecDeque<(Timestamp, Decided)>>,
    permissions: PermissionStatus,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let operations: fn() -> Histogram = || Histogram::new(OPERATION_BUCKETS);
        Recorder(Arc::new(Inner {
            operation_seconds: Family::new_with_constructor(operations),
            operation_errors: Family::default(),
            plugin_call_seconds: Family::new_with_constructor(operations),
            decision_seconds: Histogram::new(DECISION_BUCKETS),
            lease: Mutex::default(),
            decisions: Mutex::default(),
            permissions: PermissionStatus::default(),
        }))
    }
}

impl Recorder {
    /// Registers the measurements.
    pub fn register(&self, registry: &mut Registry) {
        let inner = &self.0;
        let families = [
            ("volume_operation_total_seconds", "Time of whole operations", &inner.operation_seconds),
            ("storage_operation_duration_seconds", "Time of volume plugin calls", &inner.plugin_call_seconds),
        ];
        for (name, help, family) in families {
            registry.register(name, help, family.clone());
        }
        registry.register("volume_operation_errors", "Failed operations", inner.operation_errors.clone());
        registry.register("bindery_decision_seconds", "Time to decide", inner.decision_seconds.clone());
    }

    /// Registers whether this instance is the leader, by a lease of this name.
    pub fn register_lease(&self, name: &str, registry: &mut Registry) {
        let status = Family::<Labels, Gauge>::default();
        let is_leader = self.lease().is_some_and(|lease| lease.holder == lease.identity);
        status.get_or_create(&vec![("name", name.to_owned())]).set(is_leader.into());
        registry.register("leader_election_master_status", "1 if this instance is the leader", status);
    }

    /// The permissions that are missing.
    pub fn permissions(&self) -> &PermissionStatus {
        &self.0.permissions
    }

    /// The lease as it was last seen.
    pub fn lease(&self) -> Option<LeaseStatus> {
        self.0.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last decisions, oldest first: all, or those about an object.
    pub fn decisions(&self, about: Option<&ObjectKey>) -> Vec<Value> {
        let decisions = self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let selected = decisions.iter().filter(|(_, decided)| about.is_none_or(|key| *key == decided.key));
        selected
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

impl Observer for Recorder {
    fn handled(&self, took: Duration) {
        self.0.decision_seconds.observe(took.as_secs_f64());
    }

    fn decided(&self, decided: Decided) {
        let mut decisions = self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() == DECISIONS_KEPT {
            decisions.pop_front();
        }
        decisions.push_back((Timestamp::now(), decided));
    }

    fn measured(&self, measured: &Measured) {
        let operation = match measured.what {
            Timed::Provision => "provision",
            Timed::Delete => "delete",
        };
        let labels = vec![("plugin_name", measured.plugin.to_string()), ("operation_name", operation.to_owned())];
        match measured.took {
            Some(took) => self.0.operation_seconds.get_or_create(&labels).observe(took.as_secs_f64()),
            None => {
                self.0.operation_errors.get_or_create(&labels).inc();
            }
        }
    }

    fn rejected(&self, rejection: &Rejection) {
        if rejection.error.status() == FORBIDDEN {
            self.0.permissions.request_forbidden();
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
        self.0.plugin_call_seconds.get_or_create(&labels).observe(operated.took.as_secs_f64());
    }

    fn lease_observed(&self, lease: &LeaseStatus) {
        let before = self.0.lease.lock().unwrap_or_else(PoisonError::into_inner).replace(lease.clone());
        let is_other = !lease.holder.is_empty() && lease.holder != lease.identity;
        if is_other && before.is_none_or(|before| before.holder != lease.holder) {
            tracing::info!(leader = lease.holder, renewed = age(&lease.renewed), "standing by");
        }
    }
}

/// How long ago a time of the API was: `2s ago`.
fn age(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => format!("{}s ago", Timestamp::now().duration_since(time).as_secs().max(0)),
        Err(_) => "unknown".to_owned(),
    }
}
