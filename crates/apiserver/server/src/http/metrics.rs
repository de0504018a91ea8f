//! `/metrics`: counters and gauges in Prometheus' text format, with upstream's names where it has
//! the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::call_info::CallVerb;
use super::path::Path;
use super::shared::Shared;
use crate::kinds::Kind;

/// The labels of a request: all from fixed sets, whatever a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    code: u16,
}

/// Counts what happens.
#[derive(Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Labels, u64>>,
    /// Connections that were closed because there were too many.
    pub rejected_connections: AtomicU64,
    /// Events that could not be written to the audit log.
    pub audit_errors: AtomicU64,
}

impl Metrics {
    /// Counts a response.
    pub fn responded(&self, verb: CallVerb, path: &Path<'_>, code: u16) {
        let kind =
            path.resource().and_then(|path| Some((path, Kind::of_path(path.group, path.version, &path.resource)?)));
        let subresource = kind.and_then(|(path, kind)| {
            kind.subresources.iter().map(|part| part.name).find(|name| *name == path.subresource)
        });
        let labels = Labels {
            verb: verb.metric(),
            group: kind.map_or("", |(_, kind)| kind.group),
            version: kind.map_or("", |(_, kind)| kind.version),
            resource: kind.map_or("", |(_, kind)| kind.plural),
            subresource: subresource.unwrap_or_default(),
            code,
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(labels).or_default() += 1;
    }
}

/// All metrics of a server.
pub fn page(shared: &Shared) -> String {
    let mut page = String::new();
    let requests = shared.metrics.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    describe(&mut page, "apiserver_request_total", "counter", "Responses by verb, resource and status code.");
    for (labels, count) in requests {
        let Labels { verb, group, version, resource, subresource, code } = labels;
        let _ = writeln!(
            page,
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",group=\"{group}\",resource=\"{resource}\",\
             subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\"}} {count}"
        );
    }
    let [connections, in_flight, watches] = shared.slots.used();
    let (store, _) = shared.read(|api| {
        let counts: Vec<_> = api.store().counts().collect();
        Ok((counts, api.store().bytes(), api.store().settings().store_bytes, api.revision()))
    });
    let (counts, bytes, max_bytes, revision) = store.unwrap_or_default();
    let count = |counter: &AtomicU64| usize::try_from(counter.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let metrics = &shared.metrics;
    for (name, kind, help, value) in [
        ("apiserver_current_inflight_requests", "gauge", "Requests in flight, without watches.", in_flight),
        ("apiserver_longrunning_requests", "gauge", "Open watches.", watches),
        ("apiserver_connections", "gauge", "Open connections.", connections),
        (
            "apiserver_rejected_connections_total",
            "counter",
            "Connections that were closed because there were too many.",
            count(&metrics.rejected_connections),
        ),
        (
            "apiserver_audit_error_total",
            "counter",
            "Events that could not be written to the audit log.",
            count(&metrics.audit_errors),
        ),
        ("apiserver_storage_size_bytes", "gauge", "Size of all objects.", bytes),
        ("apiserver_storage_quota_bytes", "gauge", "Size of all objects at which none can be created.", max_bytes),
        (
            "apiserver_storage_revision",
            "counter",
            "Revision of the last change.",
            usize::try_from(revision).unwrap_or(usize::MAX),
        ),
    ] {
        describe(&mut page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
    describe(&mut page, "apiserver_storage_objects", "gauge", "Number of objects by resource.");
    for (resource, count) in counts {
        let _ = writeln!(page, "apiserver_storage_objects{{resource=\"{resource}\"}} {count}");
    }
    page
}

fn describe(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
