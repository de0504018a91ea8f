//! What every program that decides on a cluster has in common: how it reaches the API server, leads, and is looked after.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::Engine;
use bindery_provisioner_sdk::InTreeWorker;
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, LeaseConfig, Observer};
use clap::ArgAction::Set;

use crate::{connect, duration, leading, metrics, serve};

/// Flags that all of them have. Those of Kubernetes' own programs keep their names and meanings.
#[derive(clap::Args)]
pub struct Common {
    /// How to reach the API server [default: KUBECONFIG, then ~/.kube/config, then the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Whether one of several instances leads, and the others stand by.
    #[arg(long, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    leader_elect: bool,
    /// How long others wait after the leader last renewed its lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    leader_elect_lease_duration: Duration,
    /// How long the leader goes on trying to renew its lease before it gives up.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    leader_elect_renew_deadline: Duration,
    /// How often the lease is tried for, or renewed.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    leader_elect_retry_period: Duration,
    /// The name of the Lease [default: bindery-controller, or bindery-scheduler].
    #[arg(long)]
    leader_elect_resource_name: Option<String>,
    /// The namespace of the Lease.
    #[arg(long, default_value = "kube-system")]
    leader_elect_resource_namespace: String,

    /// How many calls a second the API server gets at most; 0 for no limit.
    #[arg(long, default_value_t = 0.0)]
    kube_api_qps: f64,
    /// How many calls it may get at once beyond that.
    #[arg(long, default_value_t = 30.0)]
    kube_api_burst: f64,
    /// How many calls may be under way at once.
    #[arg(long, default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub kube_api_in_flight: usize,
    /// How often everything is looked at again by rules that need no safety net.
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = duration::parse)]
    pub min_resync_period: Duration,

    /// Where health and metrics are served; port 0 picks a free one, which is logged [default: 127.0.0.1:10257 for the
    /// controllers, 127.0.0.1:10259 for the scheduler].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// What a program is by itself.
pub struct Itself {
    /// The name of its Lease, unless another is given.
    pub lease: &'static str,
    /// The port that it serves on, unless another is given.
    pub port: u16,
}

impl Common {
    /// Runs an engine until it is told to stop, or until it leads no more.
    pub async fn run(self, itself: Itself, engine: Engine) -> Result<(), String> {
        let rate = (self.kube_api_qps > 0.0).then_some((self.kube_api_qps, self.kube_api_burst));
        let api = Arc::new(Api::new(
            bindery_runtime::client(connect::config(self.kubeconfig.as_deref()).await?)?,
            CALL_DEADLINE,
            rate,
        ));
        let taken = metrics::Taken::default();
        let observer: Arc<dyn Observer> = Arc::new(taken.clone());
        let mut hosted = EngineHost::start(&api, engine, &observer, |events| {
            Arc::new(InTreeWorker::new(api.clone(), events, observer.clone()))
        });
        let address = self.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], itself.port)));
        let listener = serve::listen(address).await?;
        let name = self.leader_elect_resource_name.clone().unwrap_or_else(|| itself.lease.to_owned());
        let lease = self.leader_elect.then(|| name.clone());
        let state = serve::Shared::new(hosted.outbox.clone(), taken, hosted.events.clone(), lease);
        hosted.spawn("the HTTP server", serve::serve(listener, state));
        let lease = if self.leader_elect { Some(self.lease_config(name)?) } else { None };
        leading::lead(lease, api, observer, hosted, std::future::pending()).await
    }

    fn lease_config(&self, name: String) -> Result<LeaseConfig, String> {
        let (duration, deadline, retry) =
            (self.leader_elect_lease_duration, self.leader_elect_renew_deadline, self.leader_elect_retry_period);
        if duration <= deadline || deadline <= retry.mul_f64(1.2) || retry.is_zero() {
            return Err(
            "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that longer than \
                    1.2 times --leader-elect-retry-period"
                .into(),
        );
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "unknown".into());
        let since = jiff::Timestamp::now().as_nanosecond();
        Ok(LeaseConfig {
            namespace: self.leader_elect_resource_namespace.clone(),
            name,
            identity: format!("{}_{}_{since:x}", host.trim(), std::process::id()),
            duration,
            renew_deadline: deadline,
            retry_period: retry,
            labels: Vec::new(),
        })
    }
}
