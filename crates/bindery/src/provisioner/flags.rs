//! csi-provisioner's flags, all of them.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction::Set;

use super::election;
use crate::duration;

/// What names of volumes may end in at most: a UID without its dashes.
const UID_LENGTH_MAX: i64 = 32;

/// Flags. Those of csi-provisioner keep their names and meanings.
#[derive(clap::Args)]
pub struct Args {
    /// How to reach the API server; KUBECONFIG comes first where it is set [default: the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The API server's address, in place of the one that the kubeconfig has.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub master: String,
    /// The driver's socket.
    #[arg(long, value_name = "PATH", default_value = "/run/csi/socket")]
    pub csi_address: String,
    /// How long each call of the driver may take.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub timeout: Duration,

    /// What the names of volumes begin with.
    #[arg(long, value_name = "PREFIX", default_value = "pvc")]
    pub volume_name_prefix: String,
    /// How many characters of a claim's UID they end in; -1 for all of it.
    #[arg(long, value_name = "COUNT", default_value_t = -1, allow_negative_numbers = true)]
    volume_name_uuid_length: i64,
    /// The file system of volumes whose class names none.
    #[arg(long, value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub default_fstype: String,
    /// Whether the driver is told the names of claim and volume.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub extra_create_metadata: bool,
    /// Whether a volume that may only be read is published so.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub controller_publish_readonly: bool,
    /// Whether a snapshot's volume mode is kept, unless the snapshot allows otherwise.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub prevent_volume_mode_conversion: bool,
    /// Whether a volume is to be reachable from just the node that was chosen.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub strict_topology: bool,
    /// Whether places are asked for where no node was chosen.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub immediate_topology: bool,

    /// How long to wait after a failure; it doubles with each.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub retry_interval_start: Duration,
    /// How long it becomes at most.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub retry_interval_max: Duration,
    /// How many calls of the driver may be under way at once.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub worker_threads: usize,
    /// Accepted as upstream has it: sources of clones are let go of with everything else.
    #[arg(long, value_name = "COUNT", default_value_t = 1, hide = true)]
    cloning_protection_threads: usize,
    /// How often snapshots are looked for that were left guarded; 0 for never.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub snapshot_orphan_sweep_interval: Duration,

    #[command(flatten)]
    pub capacity: CapacityFlags,
    #[command(flatten)]
    pub node: NodeFlags,
    #[command(flatten)]
    pub election: election::Flags,

    /// How many calls a second the API server gets at most; 0 for no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = 5.0)]
    pub kube_api_qps: f64,
    /// How many calls it may get at once beyond that.
    #[arg(long, value_name = "NUMBER", default_value_t = 10.0)]
    pub kube_api_burst: f64,

    /// Where health and metrics are served, such as :8080 [default: nowhere].
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    http_endpoint: String,
    /// The older name of the former.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    metrics_address: String,
    /// Where metrics are there.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    pub metrics_path: String,

    /// Switches, each as NAME=true or NAME=false: Topology, VolumeAttributesClass, CrossNamespaceVolumeDataSource,
    /// ReleaseLeaderElectionOnExit.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    #[command(flatten)]
    log: LogFlags,
}

/// How much room there is, told to schedulers.
#[derive(clap::Args)]
pub struct CapacityFlags {
    /// Whether it is told how much room there is, for schedulers.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub enable_capacity: bool,
    /// Whether for classes too whose volumes are made at once.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub capacity_for_immediate_binding: bool,
    /// How often the driver is asked.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub capacity_poll_interval: Duration,
    /// Who owns what is told: -1 nobody, 0 this pod, 1 who made the pod, 2 who made that.
    #[arg(long, value_name = "LEVEL", default_value_t = 1, allow_negative_numbers = true)]
    pub capacity_ownerref_level: i32,
    /// How many calls of the driver for it may be under way at once.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub capacity_threads: usize,
    /// How many calls a second the API server gets at most for it.
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    pub kube_api_capacity_qps: f64,
    /// How many it may get at once beyond that.
    #[arg(long, value_name = "NUMBER", default_value_t = 5.0)]
    pub kube_api_capacity_burst: f64,
}

/// One provisioner a node, beside a driver of that node alone.
#[derive(clap::Args)]
pub struct NodeFlags {
    /// Whether only the volumes of this node are made and removed. NODE_NAME says which it is.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub node_deployment: bool,
    /// Whether also for claims for which no node is chosen: one of all provisioners takes each.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub node_deployment_immediate_binding: bool,
    /// How long to wait at most before the first try to take such a claim.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration::parse)]
    pub node_deployment_base_delay: Duration,
    /// How long it becomes at most.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub node_deployment_max_delay: Duration,
}

/// Flags of Kubernetes' programs about logs and the like. They are accepted, so that a manifest need not be changed.
#[derive(clap::Args)]
struct LogFlags {
    /// How much is logged, as Kubernetes' programs count it: from 4 on what is found in order too, from 6 on everything.
    #[arg(long, value_name = "LEVEL", default_value_t = 0, hide_default_value = true)]
    v: u8,
    /// Accepted as upstream has it.
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    /// Accepted as upstream has it: logs are text on a terminal, and JSON elsewhere.
    #[arg(long, hide = true)]
    logging_format: Option<String>,
    /// Accepted as upstream has it.
    #[arg(long, hide = true)]
    log_flush_frequency: Option<String>,
    /// Accepted as upstream has it.
    #[arg(long, hide = true)]
    log_json_info_buffer_size: Option<String>,
    /// Accepted as upstream has it.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    log_json_split_stream: Option<bool>,
    /// Accepted as upstream has it.
    #[arg(long, hide = true)]
    log_text_info_buffer_size: Option<String>,
    /// Accepted as upstream has it.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    log_text_split_stream: Option<bool>,
    /// Accepted as upstream has it: threads are as many as the machine has processors for us.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    automaxprocs: Option<bool>,
    /// Accepted as upstream has it: there is nothing to be profiled that way.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide = true)]
    enable_pprof: Option<bool>,
}

impl Args {
    /// How much is to be logged, in our own measure.
    pub fn verbosity(&self) -> u8 {
        match self.log.v {
            0..=3 => 0,
            4..=5 => 1,
            6.. => 2,
        }
    }

    /// Whether the flags go together.
    pub fn check(&self) -> Result<(), String> {
        if self.volume_name_prefix.is_empty() {
            return Err("--volume-name-prefix cannot be empty".into());
        }
        if !(-1..=UID_LENGTH_MAX).contains(&self.volume_name_uuid_length) {
            return Err(format!("--volume-name-uuid-length is -1, or at most {UID_LENGTH_MAX}"));
        }
        if !self.http_endpoint.is_empty() && !self.metrics_address.is_empty() {
            return Err("only one of --metrics-address and --http-endpoint can be set".into());
        }
        if !self.metrics_path.starts_with('/') {
            return Err("--metrics-path begins with a slash".into());
        }
        if self.election.leader_election {
            self.election.check()?;
        }
        if self.timeout.is_zero() {
            return Err("--timeout cannot be 0".into());
        }
        Ok(())
    }

    /// How many characters of a claim's UID names of volumes end in, if not all.
    pub fn uid_length(&self) -> Option<usize> {
        usize::try_from(self.volume_name_uuid_length).ok()
    }

    /// Where health and metrics are served, if anywhere.
    pub fn address(&self) -> Option<&str> {
        [&self.http_endpoint, &self.metrics_address].into_iter().map(String::as_str).find(|address| !address.is_empty())
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
    }

    fn read(flags: &[&str]) -> Result<Args, String> {
        let args = Program::try_parse_from([&["program"], flags].concat()).map_err(|error| error.to_string())?.args;
        args.check().map(|()| args)
    }

    #[test]
    fn a_manifest_of_upstreams_is_understood() {
        let args = read(&[
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
        let args = args.expect("understood");
        assert!(args.extra_create_metadata && !args.immediate_topology && args.strict_topology);
        assert_eq!((args.uid_length(), args.address(), args.verbosity()), (Some(10), Some(":8080"), 1));
        assert_eq!(args.feature_gates, ["Topology=true", "VolumeAttributesClass=true"]);
        assert_eq!((args.timeout, args.capacity.capacity_ownerref_level), (Duration::from_secs(15), -1));
    }

    #[test]
    fn defaults_are_upstreams() {
        let args = read(&[]).expect("nothing is needed");
        assert_eq!((args.timeout, args.worker_threads), (Duration::from_secs(10), 100));
        assert_eq!((args.uid_length(), args.address(), args.volume_name_prefix.as_str()), (None, None, "pvc"));
        assert!(args.immediate_topology && args.prevent_volume_mode_conversion && !args.election.leader_election);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for flags in [
            &["--volume-name-prefix="][..],
            &["--volume-name-uuid-length=33"],
            &["--http-endpoint=:1", "--metrics-address=:2"],
            &["--metrics-path=metrics"],
            &["--timeout=0"],
            &["--nonsense"],
        ] {
            assert!(read(flags).is_err(), "{flags:?}");
        }
    }
}
