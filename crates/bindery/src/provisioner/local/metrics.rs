//! Metrics of local disks, with the names and labels of upstream.

use std::sync::Arc;
use std::time::Duration;

use bindery_local_disks::agent::{Cleaned, CleaningState, Cleanings, DiskObserver, DiskProblem};
use bindery_model::{Volume, VolumeMode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::metrics::Labels;

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

const PREFIX: &str = "local_volume_provisioner";

/// Capacity labels are rounded up to a multiple of this.
const STEP_BYTES: i128 = 500 << 30;

/// Counters since the start.
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
    disk_problems: Family<Labels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let quick: fn() -> Histogram = || Histogram::new(exponential_buckets(0.005, 2.5, 10));
        // From a tenth of a second to five hours.
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
            disk_problems: Family::default(),
        }
    }
}

fn mode(mode: VolumeMode) -> (&'static str, String) {
    ("mode", mode.as_str().to_owned())
}

/// The label for a capacity, rounded up.
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

    fn scanned(&self, problems: &[DiskProblem]) {
        self.disk_problems.clear();
        for problem in problems {
            let labels = vec![("class", problem.class.clone()), ("rule", problem.rule.name.to_owned())];
            self.disk_problems.get_or_create(&labels).inc();
        }
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
    /// The page. Capacity is that of the volumes that this provisioner owns.
    pub fn page(&self, owned: &[Arc<Volume>], cleanings: &Cleanings) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        let capacities = Family::<Labels, Gauge>::default();
        for volume in owned {
            let bytes = i64::try_from(volume.size().units()).unwrap_or(i64::MAX);
            capacities.get_or_create(&vec![mode(volume.volume_mode)]).inc_by(bytes);
        }
        registry.register("disk_problems", "Disks that get no volume because of a problem", self.disk_problems.clone());
        registry.register("persistentvolume_capacity_bytes", "Capacity of the volumes of this node", capacities);
        let all = [
            ("persistentvolume_discovery", "Disks for which a volume was created", &self.discovered),
            ("persistentvolume_delete", "Disks cleaned", &self.deleted),
            ("persistentvolume_delete_failed", "Failed attempts to clean a disk", &self.delete_failures),
            ("apiserver_requests", "Requests to create volumes", &self.requests),
            ("apiserver_requests_failed", "Failed requests to create volumes", &self.request_failures),
        ];
        for (name, help, family) in all {
            registry.register(name, help, family.clone());
        }
        let all = [
            (
                "persistentvolume_discovery_duration_seconds",
                "Time from discovering a disk to creating its volume",
                &self.discovery_seconds,
            ),
            ("persistentvolume_delete_duration_seconds", "Time to clean a disk", &self.delete_seconds),
            ("apiserver_requests_duration_seconds", "Time of requests to create volumes", &self.request_seconds),
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
            registry.register(name, "Cleanup processes in this state", gauge);
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
    use bindery_local_disks::rules;

    #[test]
    fn metrics_have_the_names_of_upstream() {
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
        let problem =
            DiskProblem { class: "fast".into(), rule: &rules::discovery::NOT_MOUNTED, note: "not mounted".into() };
        metrics.scanned(&[problem.clone(), problem.clone(), problem.clone()]);
        metrics.scanned(&[problem.clone(), problem]);
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
            r#"local_volume_provisioner_disk_problems{class="fast",rule="local.discovery.not-mounted"} 2"#,
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
        assert_eq!([0, 1, 500 << 30, (500 << 30) + 1].map(capacity), ["500G", "500G", "500G", "1000G"]);
    }
}
