//! The binder's configuration. Names and defaults are those of kube-controller-manager's flags.

use serde_json::Value;

/// The binder's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// `--enable-dynamic-provisioning`: whether volumes are provisioned for claims.
    pub dynamic_provisioning: bool,
    /// `--enable-hostpath-provisioner`: whether directories on this host are provisioned, for tests
    /// and single-node clusters.
    pub host_path_provisioner: bool,
    /// The recycler of NFS volumes.
    pub recycler_nfs: RecyclerConfig,
    /// The recycler of host-path volumes.
    pub recycler_host_path: RecyclerConfig,
}

/// The recycler of a plugin.
#[derive(Debug, Clone)]
pub struct RecyclerConfig {
    /// A pod template that replaces the built-in one. Its first volume is replaced by the one to
    /// scrub.
    pub pod_template: Option<Value>,
    /// The minimum of the pod's activeDeadlineSeconds.
    pub timeout_min_seconds: u64,
    /// The pod's activeDeadlineSeconds per GiB of capacity.
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
