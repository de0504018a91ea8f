//! Flags and start-up that `bindery controller` and `bindery scheduler` share.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::Engine;
use bindery_provisioner_sdk::InTreeWorker;
use bindery_runtime::{
    Api, CALL_DEADLINE, EngineHost, Lease, LeaseConfig, Observer, check_permissions, shutdown_signal,
};
use clap::ArgAction::Set;

use crate::cluster::ClusterFlags;
use crate::feature_gates::Gate;
use crate::leadership::{self, run_as_leader};
use crate::listen::ListenAddress;
use crate::{duration, endpoints, metrics, number, permissions};

/// Shared flags. Those of kube-controller-manager and kube-scheduler have the same names and
/// meanings.
#[derive(clap::Args)]
pub struct ProcessFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Elect a leader among several instances. The others stand by.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    leader_elect: bool,
    /// Time after the last renewal until another instance may take over the lease.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    leader_elect_lease_duration: Duration,
    /// Time for which the leader retries a failed renewal before it exits.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    leader_elect_renew_deadline: Duration,
    /// Time between attempts to acquire or renew the lease.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    leader_elect_retry_period: Duration,
    /// Name of the Lease [default: bindery-controller or bindery-scheduler].
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    leader_elect_resource_namespace: String,

    /// Maximum requests per second to the API server; 0 for no limit.
    #[arg(long, value_name = "NUMBER", default_value = "0", allow_negative_numbers = true, value_parser = number::rate)]
    kube_api_qps: f64,
    /// Maximum burst of requests above --kube-api-qps; 0 for 10, as client-go.
    #[arg(long, value_name = "NUMBER", default_value = "30", allow_negative_numbers = true, value_parser = number::burst)]
    kube_api_burst: f64,
    /// Maximum number of requests in flight.
    #[arg(long, value_name = "COUNT", default_value_t = 64, allow_negative_numbers = true, value_parser = number::count)]
    pub kube_api_in_flight: usize,
    /// Resync period of controllers that do not need resyncs for correctness.
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = duration::positive)]
    pub min_resync_period: Duration,

    /// Address that serves health, metrics and debug state: HOST:PORT, :PORT for all interfaces, or
    /// port 0 for any free port [default: 127.0.0.1:10257 for controllers, 127.0.0.1:10259 for the
    /// scheduler].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
}

/// Defaults that differ between the commands.
pub struct Defaults {
    /// The name of the Lease.
    pub lease: &'static str,
    /// The port of health and metrics.
    pub port: u16,
}

impl ProcessFlags {
    /// Runs an engine until SIGTERM or SIGINT, or until it loses its lease. It decides nothing
    /// before its feature gates are known.
    pub async fn run(self, defaults: Defaults, engine: Engine, gates: &[Gate]) -> Result<(), String> {
        let lease_name = self.leader_elect_resource_name.clone().unwrap_or_else(|| defaults.lease.to_owned());
        let lease = if self.leader_elect { Some(self.lease_config(lease_name)?) } else { None };
        let cluster = self.cluster.load().await?;
        let client = cluster.client()?;
        let rate = (self.kube_api_qps > 0.0).then_some((self.kube_api_qps, self.kube_api_burst));
        let api = Arc::new(Api::new(client.clone(), CALL_DEADLINE, rate));
        let unlimited = Api::new(client.clone(), CALL_DEADLINE, None);
        let needed = permissions::needed(&engine, lease.as_ref());
        let recorder = metrics::Recorder::default();
        let observer: Arc<dyn Observer> = Arc::new(recorder.clone());
        let lease = lease.map(|config| Ok::<_, String>(Lease::new(cluster.client()?, config, observer.clone())));
        let lease = lease.transpose()?;
        let listener = self.listen.unwrap_or_else(|| ListenAddress::loopback(defaults.port)).bind().await?;
        let server_version = cluster.log_version(client);
        let mut host = EngineHost::start(&api, engine, &observer, |events| {
            Arc::new(InTreeWorker::new(api.clone(), events, observer.clone()))
        });
        let lease_name = lease.as_ref().map(|lease| lease.name().to_owned());
        host.spawn("the permission check", check_permissions(unlimited, needed, recorder.permissions().clone()));
        let state = endpoints::Shared::new(&host, recorder, lease_name);
        host.spawn("the HTTP server", endpoints::serve(listener, endpoints::router(state)));
        if gates.iter().any(|gate| !gate.is_resolved()) {
            let version = tokio::select! {
                stopped = shutdown_signal() => return stopped,
                failed = host.task_failure() => return Err(failed),
                version = server_version => version.ok().flatten(),
            };
            gates.iter().for_each(|gate| gate.follow_server(version.as_deref()));
        }
        run_as_leader(lease, host, std::future::pending()).await
    }

    fn lease_config(&self, name: String) -> Result<LeaseConfig, String> {
        let (duration, renew_deadline, retry_period) =
            (self.leader_elect_lease_duration, self.leader_elect_renew_deadline, self.leader_elect_retry_period);
        leadership::check_times("--leader-elect", duration, renew_deadline, retry_period)?;
        let started = jiff::Timestamp::now().as_nanosecond();
        Ok(LeaseConfig {
            namespace: self.leader_elect_resource_namespace.clone(),
            name,
            identity: format!("{}_{}_{started:x}", leadership::hostname(), std::process::id()),
            duration,
            renew_deadline,
            retry_period,
            labels: Vec::new(),
        })
    }
}
