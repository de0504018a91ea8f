//! `bindery provisioner node-cleanup`: the claims and volumes of local disks whose nodes are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header;
use axum::routing::get;
use bindery_local_disks::node_cleanup::{DeletionObserver, Deleted, NodeCleanup};
use bindery_runtime::{Api, CALL_DEADLINE, EventSink, shutdown_signal};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::{MissedTickBehavior, interval};

use crate::metrics::CONTENT_TYPE;
use crate::{connect, duration, serve};

/// Flags. Those of upstream's node-cleanup keep their names and meanings.
#[derive(clap::Args)]
pub struct Args {
    /// How to reach the API server [default: KUBECONFIG, then ~/.kube/config, then the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The API server's address, where it is not the one that is found so.
    #[arg(long, value_name = "URL")]
    kube_api_endpoint: Option<String>,
    /// The classes whose claims and volumes are seen to. Without any, nothing is.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    storageclass_names: Vec<String>,
    /// How long a node may be gone before the claims whose volumes were on it are deleted.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pvc_deletion_delay: Duration,
    /// How often everything is looked at.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    stale_pv_discovery_interval: Duration,
    /// Accepted as upstream has it: everything is looked at every --stale-pv-discovery-interval.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse, hide_default_value = true)]
    resync: Duration,
    /// Accepted as upstream has it: one after the other is deleted.
    #[arg(long, value_name = "COUNT", default_value_t = 10, hide_default_value = true)]
    worker_threads: u32,
    /// Where health and metrics are served; port 0 picks a free one, which is logged.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", value_parser = super::listen::parse)]
    listen_address: SocketAddr,
    /// Where in there the metrics are.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    metrics_path: String,
}

/// Runs until it is told to stop.
pub async fn run(args: Args) -> Result<(), String> {
    let mut config = connect::config(args.kubeconfig.as_deref()).await?;
    if let Some(url) = &args.kube_api_endpoint {
        config.cluster_url = url.parse().map_err(|_| format!("--kube-api-endpoint: {url:?} is no URL"))?;
    }
    let classes: BTreeSet<String> = args.storageclass_names.into_iter().filter(|class| !class.is_empty()).collect();
    if classes.is_empty() {
        tracing::warn!("--storageclass-names is empty: nothing is ever deleted");
    }
    let api = Arc::new(Api::new(bindery_runtime::client(config)?, CALL_DEADLINE, None));
    let (events, write_events) = EventSink::new(api.clone());
    let counted = Counted::default();
    let counts: Arc<dyn DeletionObserver> = Arc::new(counted.clone());
    let delay = args.pvc_deletion_delay;
    let mut caretaker = NodeCleanup { api, classes, delay, events, observer: counts, missing_since: BTreeMap::new() };
    let listener = serve::listen(args.listen_address).await?;
    let path = format!("/{}", args.metrics_path.trim_start_matches('/'));
    let page = get(move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], counted.page()) });
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route(&path, page);
    let mut ticks = interval(args.stale_pv_discovery_interval.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            ticks.tick().await;
            if let Err(error) = caretaker.run_once(Instant::now()).await {
                tracing::warn!(error, "cannot look at volumes and nodes");
            }
        }
    };
    tokio::select! {
        stopped = shutdown_signal() => stopped,
        () = write_events => Err("the event sink ended unexpectedly".into()),
        served = async { axum::serve(listener, router).await } => Err(format!("the HTTP server ended: {served:?}")),
        () = rounds => Err("the rounds ended unexpectedly".into()),
    }
}

type Labels = Vec<(&'static str, String)>;

/// What was deleted since the start.
#[derive(Clone, Default)]
struct Counted {
    volumes: Family<Labels, Counter>,
    volumes_failed: Family<Labels, Counter>,
    claims: Counter,
    claims_failed: Counter,
}

impl DeletionObserver for Counted {
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

impl Counted {
    fn page(&self) -> String {
        let mut registry = Registry::with_prefix("local_volume_node_cleanup");
        registry.register("persistentvolume_delete", "Volumes deleted", self.volumes.clone());
        registry.register("persistentvolume_delete_failed", "Those that could not be", self.volumes_failed.clone());
        registry.register("persistentvolumeclaim_delete", "Claims deleted", self.claims.clone());
        registry.register("persistentvolumeclaim_delete_failed", "Those that could not be", self.claims_failed.clone());
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
        let counted = Counted::default();
        counted.deleted(&Deleted::Volume("Available".into()), true);
        counted.deleted(&Deleted::Volume("Released".into()), false);
        counted.deleted(&Deleted::Claim, true);
        counted.deleted(&Deleted::Claim, true);
        let page = counted.page();
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
