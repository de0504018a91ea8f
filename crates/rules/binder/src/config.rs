//! How the binder is set up. The names and defaults are those of kube-controller-manager's flags.

use serde_json::Value;

/// The binder's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// `--enable-dynamic-provisioning`: whether claims without a volume get one made.
    pub dynamic_provisioning: bool,
    /// `--enable-hostpath-provisioner`: whether directories on this host are made into volumes. For tests and single hosts.
    pub host_path_provisioner: bool,
    /// How NFS volumes are scrubbed.
    pub recycler_nfs: RecyclerConfig,
    /// How host-path volumes are scrubbed.
    pub recycler_host_path: RecyclerConfig,
}

/// How volumes of one plugin are scrubbed.
#[derive(Debug, Clone)]
pub struct RecyclerConfig {
    /// The pod that does it, instead of the built-in one. Its first volume is replaced by the one to scrub.
    pub pod_template: Option<Value>,
    /// The least time that it gets.
    pub timeout_min_seconds: u64,
    /// The time that it gets for each GiB.
    pub timeout_per_gib_seconds: u64,
}

impl Default for Config {
    fn default() -> Config {
        let recycler = |timeout_min_seconds| RecyclerConfig {
            pod_template: None,
            timeout_min_seconds,
            timeout_per_gib_seconds: 30,
        };
        Config {
            dynamic_provisioning: true,
            host_path_provisioner: false,
            recycler_nfs: recycler(300),
            recycler_host_path: recycler(60),
        }
    }
}
