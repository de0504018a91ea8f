//! `bindery controller`: the volume controllers.

pub mod registry;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_binder::{Config as BinderConfig, RecyclerConfig};
use bindery_engine::{Config as EngineConfig, Engine};
use clap::ArgAction::Set;
use registry::Settings;

use crate::feature_gates::{self, KubernetesVersion};
use crate::process::{Defaults, ProcessFlags};
use crate::{duration, number, snapshot};

/// Flags of `bindery controller`. Those of kube-controller-manager have the same names and
/// meanings.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    process: ProcessFlags,

    /// Controllers to run: '*' for all, 'NAME' to enable one, '-NAME' to disable one.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", allow_hyphen_values = true, long_help = controllers_help())]
    controllers: Vec<String>,
    /// Feature gates to set. Known: PersistentVolumeClaimUnusedSinceTime (on by default if the API
    /// server is 1.37 or later), which sets the condition Unused on bound claims that no pod refers
    /// to.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    feature_gates: Vec<String>,
    /// Kubernetes version whose feature gate defaults are used, as MAJOR.MINOR or
    /// kube=MAJOR.MINOR, from 1.33 to 1.37 [default: the version of the API server].
    #[arg(long, value_name = "VERSION", value_parser = feature_gates::parse_emulated_version)]
    emulated_version: Option<KubernetesVersion>,

    /// Resync period of the binder.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::positive)]
    pvclaimbinder_sync_period: Duration,
    /// Accepted for compatibility with kube-controller-manager, and ignored: --kube-api-in-flight
    /// limits all controllers together.
    #[arg(long, value_name = "COUNT", default_value_t = 5, hide_default_value = true,
          allow_negative_numbers = true, value_parser = number::count)]
    concurrent_ephemeralvolume_syncs: usize,
    /// Provision volumes for claims that no existing volume satisfies.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    enable_dynamic_provisioning: bool,
    /// Provision host-path volumes on this host. For tests and single-node clusters only.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, action = Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    enable_hostpath_provisioner: bool,
    /// Pod template for recycling NFS volumes, a YAML or JSON file [default: a built-in template].
    #[arg(long, value_name = "FILE")]
    pv_recycler_pod_template_filepath_nfs: Option<PathBuf>,
    /// Minimum time to recycle an NFS volume, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, allow_negative_numbers = true, value_parser = number::seconds)]
    pv_recycler_minimum_timeout_nfs: u64,
    /// Additional time to recycle an NFS volume for each GiB, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true, value_parser = number::seconds)]
    pv_recycler_increment_timeout_nfs: u64,
    /// Pod template for recycling host-path volumes, a YAML or JSON file [default: a built-in
    /// template].
    #[arg(long, value_name = "FILE")]
    pv_recycler_pod_template_filepath_hostpath: Option<PathBuf>,
    /// Minimum time to recycle a host-path volume, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, allow_negative_numbers = true, value_parser = number::seconds)]
    pv_recycler_minimum_timeout_hostpath: u64,
    /// Additional time to recycle a host-path volume for each GiB, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true, value_parser = number::seconds)]
    pv_recycler_timeout_increment_hostpath: u64,
}

fn controllers_help() -> String {
    format!(
        "Controllers to run: '*' for all, 'NAME' to enable one, '-NAME' to disable one. If a controller is named more \
         than once, the first occurrence counts.\n\nControllers: {}",
        registry::names().join(", ")
    )
}

/// Runs until SIGTERM or SIGINT, or until the lease is lost.
pub async fn run(args: Args) -> Result<(), String> {
    let unused_condition = registry::unused_gate(&args.feature_gates, args.emulated_version)?;
    let settings = Settings { binder: binder_config(&args)?, unused_condition };
    let engine = Engine::new(
        EngineConfig {
            resync: args.pvclaimbinder_sync_period,
            resync_rarely: args.process.min_resync_period,
            requests_max: args.process.kube_api_in_flight,
            ..EngineConfig::default()
        },
        registry::enabled(&args.controllers, &settings)?,
    );
    args.process.run(Defaults { lease: "bindery-controller", port: 10257 }, engine, &[settings.unused_condition]).await
}

fn binder_config(args: &Args) -> Result<BinderConfig, String> {
    Ok(BinderConfig {
        dynamic_provisioning: args.enable_dynamic_provisioning,
        host_path_provisioner: args.enable_hostpath_provisioner,
        recycler_nfs: RecyclerConfig {
            pod_template: pod_template(args.pv_recycler_pod_template_filepath_nfs.as_deref())?,
            timeout_min_seconds: args.pv_recycler_minimum_timeout_nfs,
            timeout_per_gib_seconds: args.pv_recycler_increment_timeout_nfs,
        },
        recycler_host_path: RecyclerConfig {
            pod_template: pod_template(args.pv_recycler_pod_template_filepath_hostpath.as_deref())?,
            timeout_min_seconds: args.pv_recycler_minimum_timeout_hostpath,
            timeout_per_gib_seconds: args.pv_recycler_timeout_increment_hostpath,
        },
    })
}

/// Reads the template of a recycler pod.
fn pod_template(file: Option<&Path>) -> Result<Option<serde_json::Value>, String> {
    let Some(file) = file else { return Ok(None) };
    let unusable =
        |error: &dyn std::fmt::Display| format!("cannot use the recycler pod template {}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| unusable(&error))?;
    let documents = snapshot::documents(&text).map_err(|error| unusable(&error))?;
    let pod = documents.into_iter().next().unwrap_or_default();
    if pod["spec"]["volumes"].as_array().is_none_or(Vec::is_empty) {
        return Err(unusable(&"does not contain any volume(s)"));
    }
    Ok(Some(pod))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycler_template_is_yaml_with_a_volume() {
        let file = std::env::temp_dir().join(format!("bindery-template-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&file, text).expect("the file is written");
            pod_template(Some(&file))
        };
        let pod = read("kind: Pod\nspec:\n  volumes: [{name: vol}]\n").expect("a template").expect("a pod");
        assert_eq!(pod["spec"]["volumes"][0]["name"], "vol");
        assert!(read("kind: Pod").expect_err("no volume").ends_with("does not contain any volume(s)"));
        assert!(read("{").is_err());
        std::fs::remove_file(&file).expect("the file is removed");
        assert!(pod_template(Some(&file)).is_err());
    }
}
