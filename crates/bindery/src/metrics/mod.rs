//! Metrics, in the Prometheus text format: upstream's names and labels, and some of our own.

mod pods;
mod queues;
mod taken;

use std::collections::BTreeMap;

use bindery_binder::Binder;
use bindery_binder::rules::CLAIM_DEFAULT_CLASS;
use bindery_engine::Engine;
use bindery_lifecycle::rules::ephemeral::MAKE_CLAIM;
use bindery_model::{ClaimPhase, Kind, Object, Source, Volume, VolumePhase};
use bindery_scheduler::Scheduler;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustc_hash::FxHashMap;

pub use taken::Taken;

/// What a page of metrics is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;

/// The page, as it is now: sizes are counted when they are asked for, and so never lie. More may be registered.
pub fn page(
    engine: &Engine,
    taken: &Taken,
    lease: Option<&str>,
    events_dropped: u64,
    more: Option<&(dyn Fn(&mut Registry) + Send + Sync)>,
) -> String {
    let mut registry = Registry::default();
    if let Some(more) = more {
        more(&mut registry);
    }
    let hosts = |set: &str| engine.controllers().any(|name| name == set);
    if hosts(Binder::NAME) {
        collect_objects(engine, &mut registry);
    }
    if hosts(Scheduler::NAME) {
        pods::collect(engine.known(), &mut registry);
    }
    taken.register(&mut registry);
    if let Some(lease) = lease {
        taken.register_lease(lease, &mut registry);
    }
    queues::collect(engine, &mut registry);
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
        registry.register(name, "Objects as they are now", family);
    }
}

fn collect_engine(engine: &Engine, events_dropped: u64, registry: &mut Registry) {
    let stats = engine.stats();
    let verdicts = Family::<Labels, Counter>::default();
    for (rule, count) in &stats.by_rule {
        verdicts.get_or_create(&vec![("rule", (*rule).to_owned())]).inc_by(*count);
    }
    registry.register("bindery_verdicts", "Verdicts and steps by rule", verdicts);
    let of_default_class =
        |counts: &FxHashMap<&str, u64>| counts.get(CLAIM_DEFAULT_CLASS.name).copied().unwrap_or_default();
    let failures = of_default_class(&stats.write_failures);
    let made = |counts: &FxHashMap<&str, u64>| counts.get(MAKE_CLAIM.name).copied().unwrap_or_default();
    let failed_makes = made(&stats.write_failures);
    let counters = [
        ("retroactive_storageclass", "Claims given the default class", of_default_class(&stats.written) + failures),
        ("retroactive_storageclass_errors", "Claims that could not be given it", failures),
        ("ephemeral_volume_controller_create", "Claims of ephemeral volumes", made(&stats.written) + failed_makes),
        ("ephemeral_volume_controller_create_failures", "Those that could not be made", failed_makes),
        ("bindery_wakes", "Keys woken by a change", stats.wakes),
        ("bindery_resyncs", "Times that everything was looked at again", stats.resyncs),
        ("bindery_resync_finds", "Things to do that only a resync found", stats.resync_finds),
        ("bindery_requests_sent", "Requests sent", stats.sent),
        ("bindery_requests_refused", "Requests refused or not answered", stats.refused),
        ("bindery_events_kept_back", "Events not published because they said nothing new", stats.notices_kept_back),
        ("bindery_events_dropped", "Events dropped because there were too many", events_dropped),
    ];
    for (name, help, value) in counters {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
    let (requests, operations) = engine.in_flight();
    let gauges = [
        ("bindery_requests_in_flight", "Requests under way", requests),
        ("bindery_operations_in_flight", "Operations under way", operations),
        ("bindery_keys_pending", "Keys that are not at rest", engine.pending()),
        ("bindery_leading", "Whether this instance leads", usize::from(engine.is_leader())),
    ];
    for (name, help, value) in gauges {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
}
