//! `bindery provisioner node-cleanup`: deletes claims and volumes of local disks whose node was
//! deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header;
use axum::routing::get;
use bindery_local_disks::node_cleanup::{Deleted, DeletionObserver, NodeCleanup};
use bindery_runtime::{Api, CALL_DEADLINE, EventSink, shutdown_signal};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::{MissedTickBehavior, interval};

use crate::cluster::ClusterFlags;
use crate::listen::ListenAddress;
use crate::metrics::{CONTENT_TYPE, Labels};
use crate::{duration, endpoints, number};

/// Flags of `bindery provisioner node-cleanup`. Those of the node-cleanup-controller have the same
/// names and meanings.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// URL of the API server, overriding the kubeconfig.
    #[arg(long, value_name = "URL")]
    kube_api_endpoint: Option<String>,
    /// StorageClasses whose claims and volumes are deleted. Without any, nothing is deleted.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    storageclass_names: Vec<String>,
    /// Time after a node was deleted until the claims of its volumes are deleted.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pvc_deletion_delay: Duration,
    /// Interval between checks of all volumes.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::positive)]
    stale_pv_discovery_interval: Duration,
    /// Accepted for compatibility, and ignored: see --stale-pv-discovery-interval.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse, hide_default_value = true)]
    resync: Duration,
    /// Accepted for compatibility, and ignored: objects are deleted one after the other.
    #[arg(long, value_name = "COUNT", default_value_t = 10, hide_default_value = true, allow_negative_numbers = true, value_parser = number::count)]
    worker_threads: usize,
    /// Address that serves health and metrics: HOST:PORT, :PORT for all interfaces, or port 0 for
    /// any free port.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", visible_alias = "listen-address")]
    listen: ListenAddress,
    /// HTTP path of metrics.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    metrics_path: String,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), String> {
    let mut cluster = args.cluster.load().await?;
    if let Some(url) = &args.kube_api_endpoint {
        cluster = cluster.with_url("--kube-api-endpoint", url)?;
    }
    let classes: BTreeSet<String> = args.storageclass_names.into_iter().filter(|class| !class.is_empty()).collect();
    if classes.is_empty() {
        tracing::warn!("--storageclass-names is empty, nothing will be deleted");
    }
    let client = cluster.client()?;
    let api = Arc::new(Api::new(client.clone(), CALL_DEADLINE, None));
    let (events, write_events) = EventSink::new(api.clone());
    let metrics = Metrics::default();
    let counts: Arc<dyn DeletionObserver> = Arc::new(metrics.clone());
    let delay = args.pvc_deletion_delay;
    let mut cleanup = NodeCleanup { api, classes, delay, events, observer: counts, missing_since: BTreeMap::new() };
    let listener = args.listen.bind().await?;
    cluster.log_version(client);
    let path = format!("/{}", args.metrics_path.trim_start_matches('/'));
    let page = get(move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.page()) });
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route(&path, page);
    let mut ticks = interval(args.stale_pv_discovery_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            ticks.tick().await;
            if let Err(error) = cleanup.run_once(Instant::now()).await {
                tracing::warn!(error, "cannot list volumes and nodes, retrying");
            }
        }
    };
    tokio::select! {
        stopped = shutdown_signal() => stopped,
        () = write_events => Err("the event sink ended unexpectedly".into()),
        () = endpoints::serve(listener, router) => Err("the HTTP server ended unexpectedly".into()),
        () = rounds => Err("the cleanup loop ended unexpectedly".into()),
    }
}

/// Deletions since the start.
#[derive(Clone, Default)]
struct Metrics {
    volumes: Family<Labels, Counter>,
    volumes_failed: Family<Labels, Counter>,
    claims: Counter,
    claims_failed: Counter,
}

impl DeletionObserver for Metrics {
    fn deleted(&self, what: &Deleted, succeeded: bool) {
        match what {
            Deleted::Claim => if succeeded { &self.claims } else { &self.claims_failed }.inc(),
            Deleted::Volume(phase) => {
                let family = if succeeded { &self.volumes } else { &self.volumes_failed };
                family.get_or_create(&vec![("phase", phase.clone())]).inc()
            }
        };
    }
}

impl Metrics {
    fn page(&self) -> String {
        let mut registry = Registry::with_prefix("local_volume_node_cleanup");
        registry.register("persistentvolume_delete", "Deleted volumes", self.volumes.clone());
        registry.register("persistentvolume_delete_failed", "Failed deletions of volumes", self.volumes_failed.clone());
        registry.register("persistentvolumeclaim_delete", "Deleted claims", self.claims.clone());
        registry.register(
            "persistentvolumeclaim_delete_failed",
            "Failed deletions of claims",
            self.claims_failed.clone(),
        );
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
    fn metrics_have_the_names_of_upstream() {
        let metrics = Metrics::default();
        metrics.deleted(&Deleted::Volume("Available".into()), true);
        metrics.deleted(&Deleted::Volume("Released".into()), false);
        metrics.deleted(&Deleted::Claim, true);
        metrics.deleted(&Deleted::Claim, true);
        let page = metrics.page();
        for line in [
            r#"local_volume_node_cleanup_persistentvolume_delete_total{phase="Available"} 1"#,
            r#"local_volume_node_cleanup_persistentvolume_delete_failed_total{phase="Released"} 1"#,
            "local_volume_node_cleanup_persistentvolumeclaim_delete_total 2",
            "local_volume_node_cleanup_persistentvolumeclaim_delete_failed_total 0",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }
}
