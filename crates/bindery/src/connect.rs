//! Which cluster: as kubectl finds it.

use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// How to reach a cluster: by a kubeconfig file; else by KUBECONFIG, ~/.kube/config, or from inside it.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config, String> {
    match kubeconfig {
        Some(file) => {
            let of_file = |error: kube::config::KubeconfigError| format!("{}: {error}", file.display());
            let kubeconfig = Kubeconfig::read_from(file).map_err(of_file)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(of_file)
        }
        None => Config::infer().await.map_err(|error| format!("no cluster to connect to: {error}")),
    }
}
