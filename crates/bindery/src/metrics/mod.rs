//! Metrics in the OpenMetrics text format: upstream's names and labels, and Bindery's own.

mod pending_pods;
mod recorder;
mod work_queues;

use std::collections::BTreeMap;

use bindery_binder::Binder;
use bindery_binder::rules::CLAIM_DEFAULT_CLASS;
use bindery_engine::Engine;
use bindery_lifecycle::rules::ephemeral::CREATE_CLAIM;
use bindery_model::{ClaimPhase, Kind, Object, Source, Volume, VolumePhase};
use bindery_rules_api::Rule;
use bindery_scheduler::Scheduler;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustc_hash::FxHashMap;

pub use recorder::Recorder;

/// The content type of the page.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Label names and values.
pub type Labels = Vec<(&'static str, String)>;

/// The page. Objects are counted for each request, so that gauges cannot drift. `more` registers
/// additional metrics.
pub fn page(
    engine: &Engine,
    recorder: &Recorder,
    lease: Option<&str>,
    events_dropped: u64,
    more: Option<&(dyn Fn(&mut Registry) + Send + Sync)>,
) -> String {
    let mut registry = Registry::default();
    if let Some(more) = more {
        more(&mut registry);
    }
    let runs = |set: &str| engine.controllers().any(|name| name == set);
    if runs(Binder::NAME) {
        collect_objects(engine, &mut registry);
    }
    if runs(Scheduler::NAME) {
        pending_pods::collect(engine.known(), &mut registry);
    }
    recorder.register(&mut registry);
    if let Some(lease) = lease {
        recorder.register_lease(lease, &mut registry);
    }
    work_queues::collect(engine, &mut registry);
    collect_engine(engine, events_dropped, &mut registry);
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut page, &registry);
    page
}

fn plugin(volume: &Volume) -> String {
    match &volume.source {
        Source::HostPath(_) => "kubernetes.io/host-path".into(),
        Source::Nfs(_) => "kubernetes.io/nfs".into(),
        Source::Csi(driver) => format!("kubernetes.io/csi:{driver}"),
        Source::Migrated(_) | Source::Flex(_) | Source::Local(_) | Source::Other => "N/A".into(),
    }
}

fn collect_objects(engine: &Engine, registry: &mut Registry) {
    let mut counts: BTreeMap<(&'static str, Labels), i64> = BTreeMap::new();
    let mut count = |name, labels: Labels| *counts.entry((name, labels)).or_default() += 1;
    let known = engine.known();
    for key in known.keys(Kind::Volume).into_iter().chain(known.keys(Kind::Claim)) {
        let object = known.object(&key);
        if let Some(Object::Volume(volume)) = &object {
            let mode = volume.volume_mode.as_str().to_owned();
            count("pv_collector_total_pv_count", vec![("plugin_name", plugin(volume)), ("volume_mode", mode)]);
            let is_bound = volume.phase == VolumePhase::Bound;
            let name = if is_bound { "pv_collector_bound_pv_count" } else { "pv_collector_unbound_pv_count" };
            count(name, vec![("storage_class", volume.class_field.to_string())]);
        } else if let Some(Object::Claim(claim)) = &object {
            let is_bound = claim.status.phase == ClaimPhase::Bound;
            let name = if is_bound { "pv_collector_bound_pvc_count" } else { "pv_collector_unbound_pvc_count" };
            let labels = vec![
                ("namespace", claim.meta.namespace.to_string()),
                ("storage_class", claim.class().to_string()),
                ("volume_attributes_class", claim.attributes().to_string()),
            ];
            count(name, labels);
        }
    }
    let mut families: BTreeMap<&'static str, Family<Labels, Gauge>> = BTreeMap::new();
    for ((name, labels), value) in counts {
        families.entry(name).or_default().get_or_create(&labels).set(value);
    }
    for (name, family) in families {
        registry.register(name, "Number of objects", family);
    }
}

fn collect_engine(engine: &Engine, events_dropped: u64, registry: &mut Registry) {
    let stats = engine.stats();
    let verdicts = Family::<Labels, Counter>::default();
    for (rule, count) in &stats.by_rule {
        verdicts.get_or_create(&vec![("rule", (*rule).to_owned())]).inc_by(*count);
    }
    registry.register("bindery_verdicts", "Verdicts and steps, by rule", verdicts);
    let of_rule = |counts: &FxHashMap<&str, u64>, rule: &Rule| counts.get(rule.name).copied().unwrap_or_default();
    let class_failures = of_rule(&stats.write_failures, &CLAIM_DEFAULT_CLASS);
    let class_writes = of_rule(&stats.written, &CLAIM_DEFAULT_CLASS);
    let create_failures = of_rule(&stats.write_failures, &CREATE_CLAIM);
    let creates = of_rule(&stats.written, &CREATE_CLAIM);
    let counters = [
        ("retroactive_storageclass", "Claims assigned the default StorageClass", class_writes + class_failures),
        ("retroactive_storageclass_errors", "Failed assignments of the default StorageClass", class_failures),
        ("ephemeral_volume_controller_create", "Claims created for ephemeral volumes", creates + create_failures),
        ("ephemeral_volume_controller_create_failures", "Failed creations of such claims", create_failures),
        ("bindery_wakes", "Objects queued because something they depend on changed", stats.wakes),
        ("bindery_resyncs", "Resyncs of all objects", stats.resyncs),
        ("bindery_resync_finds", "Changes that only a resync found; should stay 0", stats.resync_finds),
        ("bindery_requests_sent", "Requests sent to the API server", stats.sent),
        ("bindery_requests_failed", "Requests rejected or not answered by the API server", stats.rejected),
        (
            "bindery_events_suppressed",
            "Events not published because they repeat an earlier one",
            stats.events_suppressed,
        ),
        ("bindery_events_dropped", "Events dropped because the queue was full", events_dropped),
    ];
    for (name, help, value) in counters {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
    let (requests, operations) = engine.in_flight();
    let gauges = [
        ("bindery_requests_in_flight", "Requests in flight", requests),
        ("bindery_operations_in_flight", "Operations in flight", operations),
        ("bindery_keys_pending", "Objects with work queued or in flight", engine.pending()),
        ("bindery_is_leader", "1 if this instance is the leader", usize::from(engine.is_leader())),
    ];
    for (name, help, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
}
