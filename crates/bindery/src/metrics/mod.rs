//! Metrics in the OpenMetrics text format: upstream's names and labels, and Bindery's own.

mod pending_pods;
mod recorder;
mod work_queues;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use bindery_binder::Binder;
use bindery_binder::rules::CLAIM_DEFAULT_CLASS;
use bindery_cache::Plugin;
use bindery_engine::Engine;
use bindery_lifecycle::rules::ephemeral::CREATE_CLAIM;
use bindery_rules_api::Rule;
use bindery_runtime::WatchStatus;
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

/// All metrics as they are now. `more` registers additional ones. This runs in the engine task, so
/// it reads counters and scans nothing; [`page`] does not need the engine.
pub fn collect(
    engine: &Engine,
    recorder: &Recorder,
    watches: &WatchStatus,
    lease: Option<&str>,
    events_dropped: u64,
    more: Option<&(dyn Fn(&mut Registry) + Send + Sync)>,
) -> Registry {
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
    collect_access(recorder, watches, &mut registry);
    registry
}

/// The page with these metrics.
pub fn page(registry: &Registry) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut page, registry);
    page
}

fn plugin_name(plugin: &Plugin) -> String {
    match plugin {
        Plugin::HostPath => "kubernetes.io/host-path".into(),
        Plugin::Nfs => "kubernetes.io/nfs".into(),
        Plugin::Csi(driver) => format!("kubernetes.io/csi:{driver}"),
        Plugin::Other => "N/A".into(),
    }
}

/// The numbers of claims and volumes. The cache counts them with every change, so that a page costs
/// the same however many there are.
fn collect_objects(engine: &Engine, registry: &mut Registry) {
    let mut counts: BTreeMap<(&'static str, Labels), usize> = BTreeMap::new();
    let mut add = |name, labels: Labels, count| *counts.entry((name, labels)).or_default() += count;
    for (group, count) in engine.known().volume_counts().iter() {
        let mode = group.volume_mode.as_str().to_owned();
        let labels = vec![("plugin_name", plugin_name(&group.plugin)), ("volume_mode", mode)];
        add("pv_collector_total_pv_count", labels, count);
        let name = if group.is_bound { "pv_collector_bound_pv_count" } else { "pv_collector_unbound_pv_count" };
        add(name, vec![("storage_class", group.class.to_string())], count);
    }
    for (group, count) in engine.known().claim_counts().iter() {
        let name = if group.is_bound { "pv_collector_bound_pvc_count" } else { "pv_collector_unbound_pvc_count" };
        let labels = vec![
            ("namespace", group.namespace.to_string()),
            ("storage_class", group.class.to_string()),
            ("volume_attributes_class", group.attributes_class.to_string()),
        ];
        add(name, labels, count);
    }
    let mut families: BTreeMap<&'static str, Family<Labels, Gauge>> = BTreeMap::new();
    for ((name, labels), value) in counts {
        families.entry(name).or_default().get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
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
    let rejections = Family::<Labels, Counter>::default();
    for ((status, step), count) in &stats.rejections {
        rejections.get_or_create(&vec![("status", status.to_string()), ("step", (*step).to_owned())]).inc_by(*count);
    }
    let help = "Requests rejected or not answered, by HTTP status (0: no response) and step";
    registry.register("bindery_requests_rejected", help, rejections);
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

/// What this program may do, and how current its watches are.
fn collect_access(recorder: &Recorder, watches: &WatchStatus, registry: &mut Registry) {
    let staleness = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (kind, stale) in watches.staleness() {
        staleness.get_or_create(&vec![("kind", kind.as_str().to_owned())]).set(stale.as_secs_f64());
    }
    let help = "Seconds since the watch was last known to be current: since its last list, event or bookmark";
    registry.register("bindery_watch_staleness_seconds", help, staleness);
    let missing = Gauge::<i64>::default();
    missing.set(i64::try_from(recorder.permissions().missing().len()).unwrap_or(i64::MAX));
    registry.register("bindery_permissions_missing", "Permissions that this program needs and lacks", missing);
}
