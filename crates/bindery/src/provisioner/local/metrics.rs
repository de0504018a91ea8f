//! Metrics of local disks: upstream's names and labels.

use std::sync::Arc;
use std::time::Duration;

use bindery_local_disks::agent::{Cleaned, Cleanings, DiskObserver, CleaningState};
use bindery_model::{Volume, VolumeMode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

const PREFIX: &str = "local_volume_provisioner";

/// Capacities are told apart in steps of so much.
const STEP_BYTES: i128 = 500 << 30;

/// What was counted since the start.
#[derive(Clone)]
pub struct Metrics {
    discovered: Family<Labels, Counter>,
    discovery_seconds: Histograms,
    deleted: Family<Labels, Counter>,
    delete_failures: Family<Labels, Counter>,
    delete_seconds: Histograms,
    requests: Family<Labels, Counter>,
    request_failures: Family<Labels, Counter>,
    request_seconds: Histograms,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let quick: fn() -> Histogram = || Histogram::new(exponential_buckets(0.005, 2.5, 10));
        // From a tenth of a second to some hours.
        let slow: fn() -> Histogram = || Histogram::new(exponential_buckets(0.1, 3.0, 12));
        Metrics {
            discovered: Family::default(),
            discovery_seconds: Family::new_with_constructor(quick),
            deleted: Family::default(),
            delete_failures: Family::default(),
            delete_seconds: Family::new_with_constructor(slow),
            requests: Family::default(),
            request_failures: Family::default(),
            request_seconds: Family::new_with_constructor(quick),
        }
    }
}

fn mode(mode: VolumeMode) -> (&'static str, String) {
    ("mode", mode.as_str().to_owned())
}

/// A capacity, rounded up.
fn capacity(bytes: i128) -> String {
    let steps = (bytes + STEP_BYTES - 1).div_euclid(STEP_BYTES).max(1);
    format!("{}G", steps * 500)
}

impl DiskObserver for Metrics {
    fn discovered(&self, volume_mode: VolumeMode, took: Duration) {
        self.discovered.get_or_create(&vec![mode(volume_mode)]).inc();
        self.discovery_seconds.get_or_create(&vec![mode(volume_mode)]).observe(took.as_secs_f64());
    }

    fn create_finished(&self, took: Duration, succeeded: bool) {
        let labels = vec![("method", "create".to_owned())];
        self.requests.get_or_create(&labels).inc();
        if !succeeded {
            self.request_failures.get_or_create(&labels).inc();
        }
        self.request_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    fn cleaned(&self, cleaned: &Cleaned) {
        let mut labels = vec![mode(cleaned.mode), ("type", "process".to_owned())];
        if !cleaned.succeeded {
            self.delete_failures.get_or_create(&labels).inc();
            return;
        }
        self.deleted.get_or_create(&labels).inc();
        labels.extend([("capacity", capacity(cleaned.bytes)), ("cleanup_command", cleaned.command.clone())]);
        self.delete_seconds.get_or_create(&labels).observe(cleaned.took.as_secs_f64());
    }
}

impl Metrics {
    /// The page, as it is now. Capacity is that of all volumes which are ours.
    pub fn page(&self, ours: &[Arc<Volume>], cleanings: &Cleanings) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        let held = Family::<Labels, Gauge>::default();
        for volume in ours {
            let bytes = i64::try_from(volume.holds().units()).unwrap_or(i64::MAX);
            held.get_or_create(&vec![mode(volume.volume_mode)]).inc_by(bytes);
        }
        registry.register("persistentvolume_capacity_bytes", "How much the volumes of this node hold", held);
        let all = [
            ("persistentvolume_discovery", "Disks offered as volumes", &self.discovered),
            ("persistentvolume_delete", "Disks cleaned", &self.deleted),
            ("persistentvolume_delete_failed", "Times that a disk could not be cleaned", &self.delete_failures),
            ("apiserver_requests", "Volumes asked for", &self.requests),
            ("apiserver_requests_failed", "Those that were refused", &self.request_failures),
        ];
        for (name, help, family) in all {
            registry.register(name, help, family.clone());
        }
        let all = [
            (
                "persistentvolume_discovery_duration_seconds",
                "From looking at a disk to offering it",
                &self.discovery_seconds,
            ),
            ("persistentvolume_delete_duration_seconds", "How long cleaning takes", &self.delete_seconds),
            ("apiserver_requests_duration_seconds", "How long the API server takes", &self.request_seconds),
        ];
        for (name, help, family) in all {
            registry.register(name, help, family.clone());
        }
        let states = [
            ("proctable_running", CleaningState::Running),
            ("proctable_failed", CleaningState::Failed),
            ("proctable_succeeded", CleaningState::Succeeded),
        ];
        for (name, state) in states {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(cleanings.count(state)).unwrap_or(i64::MAX));
            registry.register(name, "Cleanings that stand so", gauge);
        }
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut page, &registry);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_upstream_s_names() {
        let (metrics, cleanings) = (Metrics::default(), Cleanings::default());
        metrics.discovered(VolumeMode::Block, Duration::from_millis(3));
        metrics.create_finished(Duration::from_millis(3), false);
        let cleaned = |succeeded| Cleaned {
            mode: VolumeMode::Block,
            bytes: 501 << 30,
            command: "builtin:quick".into(),
            took: Duration::from_secs(1),
            succeeded,
        };
        metrics.cleaned(&cleaned(true));
        metrics.cleaned(&cleaned(false));
        cleanings.begin(&"v".into());
        let volume = Volume::from_json(br#"{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Ki"}}}"#);
        let page = metrics.page(&[Arc::new(volume.expect("a volume"))], &cleanings);
        for line in [
            r#"local_volume_provisioner_persistentvolume_capacity_bytes{mode="Filesystem"} 1024"#,
            r#"local_volume_provisioner_persistentvolume_discovery_total{mode="Block"} 1"#,
            r#"local_volume_provisioner_persistentvolume_delete_total{mode="Block",type="process"} 1"#,
            r#"local_volume_provisioner_persistentvolume_delete_failed_total{mode="Block",type="process"} 1"#,
            r#"local_volume_provisioner_apiserver_requests_failed_total{method="create"} 1"#,
            r#"delete_duration_seconds_count{mode="Block",type="process",capacity="1000G",cleanup_command="builtin:quick"} 1"#,
            "local_volume_provisioner_proctable_running 1",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
        assert_eq!([0, 1, 500 << 30, (500 << 30) + 1].map(capacity), ["500G", "500G", "500G", "1000G"]);
    }
}
