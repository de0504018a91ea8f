//! `bindery controller`: the controllers on a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindery_binder::{Config as BinderConfig, RecyclerConfig};
use bindery_engine::{Config as EngineConfig, Engine};
use bindery_runtime::{Api, Lease, LeaseConfig, Observer};
use clap::ArgAction::Set;

use crate::controllers::{self, Settings};
use crate::hosting::{CALL_DEADLINE, Hosted, told_to_stop};
use crate::{connect, duration, metrics, serve, snapshot};

/// Flags. Those of kube-controller-manager keep their names and meanings.
#[derive(clap::Args)]
pub struct Args {
    /// How to reach the API server [default: KUBECONFIG, then ~/.kube/config, then the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Which controllers run: '*' for all, 'NAME' for one, '-NAME' for all but one.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true, long_help = controllers_help())]
    controllers: Vec<String>,
    /// What is switched on or off before it is the default. Known is PersistentVolumeClaimUnusedSinceTime (on): bound claims
    /// get the condition Unused, which tells since when no pod refers to them.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    feature_gates: Vec<String>,

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
    /// The name of the Lease.
    #[arg(long, default_value = "bindery-controller")]
    leader_elect_resource_name: String,
    /// The namespace of the Lease.
    #[arg(long, default_value = "kube-system")]
    leader_elect_resource_namespace: String,

    /// How often the binder looks at everything again, as a safety net.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pvclaimbinder_sync_period: Duration,
    /// How often the others do.
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = duration::parse)]
    min_resync_period: Duration,
    /// Accepted as kube-controller-manager has it: what is under way at once, --kube-api-in-flight limits for all alike.
    #[arg(long, value_name = "COUNT", default_value_t = 5, hide_default_value = true,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    concurrent_ephemeralvolume_syncs: usize,
    /// How many calls a second the API server gets at most; 0 for no limit.
    #[arg(long, default_value_t = 0.0)]
    kube_api_qps: f64,
    /// How many calls it may get at once beyond that.
    #[arg(long, default_value_t = 30.0)]
    kube_api_burst: f64,
    /// How many calls may be under way at once. Each has a connection of its own, which is kept.
    #[arg(long, default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    kube_api_in_flight: usize,

    /// Whether claims without a volume get one made.
    #[arg(long, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    enable_dynamic_provisioning: bool,
    /// Whether directories on this host are made into volumes. For tests, and for clusters of one host.
    #[arg(long, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    enable_hostpath_provisioner: bool,
    /// The pod that scrubs NFS volumes, as a file of YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pv_recycler_pod_template_filepath_nfs: Option<PathBuf>,
    /// The least time that scrubbing an NFS volume gets, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pv_recycler_minimum_timeout_nfs: u64,
    /// The time that scrubbing an NFS volume gets for each GiB, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pv_recycler_increment_timeout_nfs: u64,
    /// The pod that scrubs host-path volumes, as a file of YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pv_recycler_pod_template_filepath_hostpath: Option<PathBuf>,
    /// The least time that scrubbing a host-path volume gets, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pv_recycler_minimum_timeout_hostpath: u64,
    /// The time that scrubbing a host-path volume gets for each GiB, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pv_recycler_timeout_increment_hostpath: u64,

    /// Where health and metrics are served; port 0 picks a free one, which is logged.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10257")]
    listen: SocketAddr,
}

fn controllers_help() -> String {
    let names = controllers::names();
    format!(
        "Which controllers run: '*' for all, 'NAME' for one, '-NAME' for all but one. The first word that speaks of a \
         controller decides.\n\nThere are: {}",
        names.join(", ")
    )
}

/// Runs until it is told to stop, or until it leads no more.
pub async fn run(args: Args) -> Result<(), String> {
    let settings = Settings { binder: binder_config(&args)?, ..Settings::default() }.with_gates(&args.feature_gates)?;
    let engine = Engine::new(
        EngineConfig {
            resync: args.pvclaimbinder_sync_period,
            resync_rarely: args.min_resync_period,
            requests_max: args.kube_api_in_flight,
            ..EngineConfig::default()
        },
        controllers::chosen(&args.controllers, &settings)?,
    );
    let rate = (args.kube_api_qps > 0.0).then_some((args.kube_api_qps, args.kube_api_burst));
    let api = Arc::new(Api::new(
        bindery_runtime::client(connect::config(args.kubeconfig.as_deref()).await?)?,
        CALL_DEADLINE,
        rate,
    ));
    let taken = metrics::Taken::default();
    let observer: Arc<dyn Observer> = Arc::new(taken.clone());
    let mut hosted = Hosted::start(&api, engine, &observer);
    let listener = serve::listen(args.listen).await?;
    let lease = args.leader_elect.then(|| args.leader_elect_resource_name.clone());
    let state = serve::Shared::new(hosted.outbox.clone(), taken, hosted.events.clone(), lease);
    hosted.run("the HTTP server", serve::serve(listener, state));
    lead(&args, api, observer, hosted).await
}

/// Leads, at once or when the lease is had, until told to stop.
async fn lead(args: &Args, api: Arc<Api>, observer: Arc<dyn Observer>, mut hosted: Hosted) -> Result<(), String> {
    let mut stop = std::pin::pin!(told_to_stop());
    if !args.leader_elect {
        hosted.lead(true)?;
        return tokio::select! {
            stopped = &mut stop => stopped,
            failed = hosted.failed() => Err(failed),
        };
    }
    let mut lease = Lease::new(api, lease_config(args)?, observer);
    tokio::select! {
        stopped = &mut stop => return stopped,
        failed = hosted.failed() => return Err(failed),
        () = lease.acquire() => hosted.lead(true)?,
    }
    let ended = tokio::select! {
        stopped = &mut stop => stopped,
        failed = hosted.failed() => Err(failed),
        () = lease.hold() => return Err("the lease was lost: another instance may lead now".into()),
    };
    // First nothing more is sent, then another may lead.
    hosted.lead(false)?;
    lease.release().await;
    ended
}

fn binder_config(args: &Args) -> Result<BinderConfig, String> {
    Ok(BinderConfig {
        dynamic_provisioning: args.enable_dynamic_provisioning,
        host_path_provisioner: args.enable_hostpath_provisioner,
        recycler_nfs: RecyclerConfig {
            pod_template: template(args.pv_recycler_pod_template_filepath_nfs.as_ref())?,
            timeout_min_seconds: args.pv_recycler_minimum_timeout_nfs,
            timeout_per_gib_seconds: args.pv_recycler_increment_timeout_nfs,
        },
        recycler_host_path: RecyclerConfig {
            pod_template: template(args.pv_recycler_pod_template_filepath_hostpath.as_ref())?,
            timeout_min_seconds: args.pv_recycler_minimum_timeout_hostpath,
            timeout_per_gib_seconds: args.pv_recycler_timeout_increment_hostpath,
        },
    })
}

/// Reads a recycler pod's template, in YAML or JSON.
fn template(file: Option<&PathBuf>) -> Result<Option<serde_json::Value>, String> {
    let Some(file) = file else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let documents = snapshot::documents(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let pod = documents.into_iter().next().unwrap_or_default();
    if pod["spec"]["volumes"].as_array().is_none_or(Vec::is_empty) {
        return Err(format!("{}: does not contain any volume(s)", file.display()));
    }
    Ok(Some(pod))
}

fn lease_config(args: &Args) -> Result<LeaseConfig, String> {
    let (duration, deadline, retry) =
        (args.leader_elect_lease_duration, args.leader_elect_renew_deadline, args.leader_elect_retry_period);
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
        namespace: args.leader_elect_resource_namespace.clone(),
        name: args.leader_elect_resource_name.clone(),
        identity: format!("{}_{}_{since:x}", host.trim(), std::process::id()),
        duration,
        renew_deadline: deadline,
        retry_period: retry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycler_template_is_yaml_and_has_a_volume() {
        let file = std::env::temp_dir().join(format!("bindery-template-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&file, text).expect("written");
            template(Some(&file))
        };
        let pod = read("kind: Pod\nspec:\n  volumes: [{name: vol}]\n").expect("a template").expect("a pod");
        assert_eq!(pod["spec"]["volumes"][0]["name"], "vol");
        assert!(read("kind: Pod").expect_err("no volume").ends_with("does not contain any volume(s)"));
        assert!(read("{").is_err());
        std::fs::remove_file(&file).expect("removed");
        assert!(template(Some(&file)).is_err());
    }
}
