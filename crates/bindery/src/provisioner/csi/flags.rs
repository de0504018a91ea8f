//! Flags of csi-provisioner.

use std::time::Duration;

use clap::ArgAction::Set;

use super::leader_election::LeaderElectionFlags;
use crate::cluster::ClusterFlags;
use crate::listen::ListenAddress;
use crate::{duration, number};

/// The number of hexadecimal digits in a UID.
const UID_LENGTH_MAX: i64 = 32;

/// Flags of `bindery provisioner csi`. Those of csi-provisioner have the same names and meanings.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// URL of the API server, overriding the kubeconfig.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub master: String,
    /// Socket of the CSI driver.
    #[arg(long, value_name = "PATH", default_value = "/run/csi/socket")]
    pub csi_address: String,
    /// Timeout of each call to the CSI driver.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::positive)]
    pub timeout: Duration,

    /// Prefix of the names of provisioned volumes.
    #[arg(long, value_name = "PREFIX", default_value = "pvc")]
    pub volume_name_prefix: String,
    /// Number of digits of the claim's UID in the names of provisioned volumes; -1 for the whole
    /// UID.
    #[arg(long, value_name = "COUNT", default_value_t = -1, allow_negative_numbers = true)]
    volume_name_uuid_length: i64,
    /// File system type of volumes whose class does not set one [default: chosen by the driver].
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub default_fstype: String,
    /// Pass the names of the claim and the volume to CreateVolume.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub extra_create_metadata: bool,
    /// Mark volumes with a read-only access mode as read-only in the CSI volume source.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub controller_publish_readonly: bool,
    /// Reject a claim whose volume mode differs from that of its source snapshot, unless the
    /// snapshot allows it.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub prevent_volume_mode_conversion: bool,
    /// Pass only the topology of the selected node to CreateVolume, instead of that of all nodes.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub strict_topology: bool,
    /// Pass topology requirements to CreateVolume for Immediate binding.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub immediate_topology: bool,

    /// Delay before the first retry of a failed operation. It doubles with each failure.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::positive)]
    pub retry_interval_start: Duration,
    /// Maximum delay before a retry.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::positive)]
    pub retry_interval_max: Duration,
    /// Maximum number of operations in flight.
    #[arg(long, value_name = "COUNT", default_value_t = 100, allow_negative_numbers = true, value_parser = number::count)]
    pub worker_threads: usize,
    /// Accepted for compatibility, and ignored: clone sources share the other workers.
    #[arg(long, value_name = "COUNT", default_value_t = 1, hide = true, allow_negative_numbers = true, value_parser = number::count)]
    cloning_protection_threads: usize,
    /// Interval between searches for snapshots with a leftover finalizer; 0 to disable.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub snapshot_orphan_sweep_interval: Duration,

    #[command(flatten)]
    pub capacity: CapacityFlags,
    #[command(flatten)]
    pub node: NodeFlags,
    #[command(flatten)]
    pub election: LeaderElectionFlags,

    /// Maximum requests per second to the API server; 0 for no limit.
    #[arg(long, value_name = "NUMBER", default_value = "5", allow_negative_numbers = true, value_parser = number::rate)]
    pub kube_api_qps: f64,
    /// Maximum burst of requests above --kube-api-qps; 0 for 10, as client-go.
    #[arg(long, value_name = "NUMBER", default_value = "10", allow_negative_numbers = true, value_parser = number::burst)]
    pub kube_api_burst: f64,

    /// Address that serves health, metrics and debug state: HOST:PORT, or :PORT for all interfaces
    /// [default: not served].
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true, visible_aliases = ["http-endpoint", "metrics-address"])]
    listen: String,
    /// HTTP path of metrics.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    pub metrics_path: String,

    /// Feature gates to set. Known: Topology (default true), VolumeAttributesClass (default: if the
    /// API server serves it), CrossNamespaceVolumeDataSource (default false),
    /// ReleaseLeaderElectionOnExit (ignored; the lease is always released).
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    #[command(flatten)]
    ignored: IgnoredFlags,
}

/// Flags about publishing capacity.
#[derive(clap::Args)]
pub struct CapacityFlags {
    /// Publish the driver's capacity for schedulers, as CSIStorageCapacity objects. Requires the
    /// environment variables NAMESPACE and POD_NAME.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub enable_capacity: bool,
    /// Publish capacity also for classes with Immediate binding.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub capacity_for_immediate_binding: bool,
    /// Interval between GetCapacity calls.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::positive)]
    pub capacity_poll_interval: Duration,
    /// Owner of CSIStorageCapacity objects: -1 for none, 0 for this pod, 1 for the pod's owner, 2
    /// for that object's owner.
    #[arg(long, value_name = "LEVEL", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1..))]
    pub capacity_ownerref_level: i32,
    /// Maximum number of GetCapacity calls in flight.
    #[arg(long, value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true, value_parser = number::count)]
    pub capacity_threads: usize,
    /// Maximum requests per second to the API server for publishing capacity; 0 for 5, as
    /// client-go.
    #[arg(long, value_name = "NUMBER", default_value = "1", allow_negative_numbers = true, value_parser = number::rate_or_default)]
    pub kube_api_capacity_qps: f64,
    /// Maximum burst of requests above --kube-api-capacity-qps; 0 for 10, as client-go.
    #[arg(long, value_name = "NUMBER", default_value = "5", allow_negative_numbers = true, value_parser = number::burst)]
    pub kube_api_capacity_burst: f64,
}

/// Flags about running one provisioner per node.
#[derive(clap::Args)]
pub struct NodeFlags {
    /// Provision and delete only volumes of the node named by the environment variable NODE_NAME.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub node_deployment: bool,
    /// With --node-deployment, also provision claims with Immediate binding. The provisioners of
    /// all nodes compete for each claim.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub node_deployment_immediate_binding: bool,
    /// Maximum delay before the first attempt to become the owner of such a claim.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration::parse)]
    pub node_deployment_base_delay: Duration,
    /// Maximum delay before later attempts.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub node_deployment_max_delay: Duration,
}

/// Flags that are accepted and ignored, so that existing manifests keep working.
#[derive(clap::Args)]
struct IgnoredFlags {
    /// Ignored.
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    log_flush_frequency: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    log_json_info_buffer_size: Option<String>,
    /// Ignored.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    log_json_split_stream: Option<bool>,
    /// Ignored.
    #[arg(long, hide = true)]
    log_text_info_buffer_size: Option<String>,
    /// Ignored.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    log_text_split_stream: Option<bool>,
    /// Ignored: the number of threads follows the available processors.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    automaxprocs: Option<bool>,
    /// Ignored: there is no pprof endpoint.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    enable_pprof: Option<bool>,
}

impl Args {
    /// Checks what clap does not.
    pub fn check(&self) -> Result<(), String> {
        if self.volume_name_prefix.is_empty() {
            return Err("--volume-name-prefix cannot be empty".into());
        }
        if !(-1..=UID_LENGTH_MAX).contains(&self.volume_name_uuid_length) {
            let length = self.volume_name_uuid_length;
            return Err(format!("--volume-name-uuid-length is {length}; it must be between -1 and {UID_LENGTH_MAX}"));
        }
        self.listen_address()?;
        if !self.metrics_path.starts_with('/') {
            return Err("--metrics-path must start with a slash".into());
        }
        if self.election.leader_election {
            self.election.check()?;
        }
        Ok(())
    }

    /// How many digits of the claim's UID volume names contain; `None` for the whole UID.
    pub fn uid_length(&self) -> Option<usize> {
        usize::try_from(self.volume_name_uuid_length).ok()
    }

    /// Where health and metrics are served, if anywhere. An empty address disables them, as for
    /// csi-provisioner.
    pub fn listen_address(&self) -> Result<Option<ListenAddress>, String> {
        match self.listen.as_str() {
            "" => Ok(None),
            address => address.parse().map(Some).map_err(|error| format!("--listen: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
        #[command(flatten)]
        log: crate::logging::LogFlags,
    }

    fn parse(flags: &[&str]) -> Result<Args, String> {
        let program = Program::try_parse_from([&["program"], flags].concat()).map_err(|error| error.to_string())?;
        assert!(program.log.v == 0 || program.log.v == 5);
        program.args.check().map(|()| program.args)
    }

    fn address(args: &Args) -> Option<String> {
        args.listen_address().expect("a valid address").map(|address| address.to_string())
    }

    #[test]
    fn flags_of_an_upstream_manifest_are_accepted() {
        let args = parse(&[
            "--v=5",
            "--csi-address=/csi/csi.sock",
            "--feature-gates=Topology=true,VolumeAttributesClass=true",
            "--extra-create-metadata",
            "--immediate-topology=false",
            "--strict-topology=true",
            "--volume-name-uuid-length=10",
            "--snapshot-orphan-sweep-interval=0",
            "--leader-election",
            "--leader-election-namespace=storage",
            "--leader-election-labels=a:b,c:d",
            "--http-endpoint=:8080",
            "--metrics-path=/metrics",
            "--timeout=15s",
            "--worker-threads=10",
            "--kube-api-qps=100",
            "--kube-api-burst=200",
            "--retry-interval-start=500ms",
            "--enable-pprof=true",
            "--logging-format=json",
            "--cloning-protection-threads=2",
            "--capacity-ownerref-level=-1",
        ]);
        let args = args.expect("valid flags");
        assert!(args.extra_create_metadata && !args.immediate_topology && args.strict_topology);
        assert_eq!((args.uid_length(), address(&args)), (Some(10), Some(":8080".into())));
        assert_eq!(args.feature_gates, ["Topology=true", "VolumeAttributesClass=true"]);
        assert_eq!((args.timeout, args.capacity.capacity_ownerref_level), (Duration::from_secs(15), -1));
    }

    #[test]
    fn defaults_are_those_of_csi_provisioner() {
        let args = parse(&[]).expect("no flag is required");
        assert_eq!((args.timeout, args.worker_threads), (Duration::from_secs(10), 100));
        assert_eq!((args.uid_length(), address(&args), args.volume_name_prefix.as_str()), (None, None, "pvc"));
        assert!(args.immediate_topology && args.prevent_volume_mode_conversion && !args.election.leader_election);
    }

    #[test]
    fn invalid_flags_are_rejected() {
        for flags in [
            &["--volume-name-prefix="][..],
            &["--volume-name-uuid-length=33"],
            &["--http-endpoint=:1", "--metrics-address=:2"],
            &["--http-endpoint=8080"],
            &["--metrics-path=metrics"],
            &["--timeout=0"],
            &["--nonsense"],
        ] {
            assert!(parse(flags).is_err(), "{flags:?}");
        }
    }
}
