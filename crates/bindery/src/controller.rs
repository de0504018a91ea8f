//! `bindery controller`: the controllers on a cluster.

use std::path::PathBuf;
use std::time::Duration;

use bindery_binder::{Config as BinderConfig, RecyclerConfig};
use bindery_engine::{Config as EngineConfig, Engine};
use clap::ArgAction::Set;

use crate::common::{Common, Itself};
use crate::controllers::{self, Settings};
use crate::{duration, snapshot};

/// Flags. Those of kube-controller-manager keep their names and meanings.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,

    /// Which controllers run: '*' for all, 'NAME' for one, '-NAME' for all but one.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true, long_help = controllers_help())]
    controllers: Vec<String>,
    /// What is switched on or off before it is the default. Known is PersistentVolumeClaimUnusedSinceTime (on): bound claims
    /// get the condition Unused, which tells since when no pod refers to them.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    feature_gates: Vec<String>,

    /// How often the binder looks at everything again, as a safety net.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    pvclaimbinder_sync_period: Duration,
    /// Accepted as kube-controller-manager has it: what is under way at once, --kube-api-in-flight limits for all alike.
    #[arg(long, value_name = "COUNT", default_value_t = 5, hide_default_value = true,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    concurrent_ephemeralvolume_syncs: usize,
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
            resync_rarely: args.common.min_resync_period,
            requests_max: args.common.kube_api_in_flight,
            ..EngineConfig::default()
        },
        controllers::chosen(&args.controllers, &settings)?,
    );
    args.common.run(Itself { lease: "bindery-controller", port: 10257 }, engine).await
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
