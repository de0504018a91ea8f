//! Which cluster a command talks to, found as kubectl finds it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_runtime::{CALL_DEADLINE, connection_error};
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long to wait before the API server's version is requested again.
const RETRY_PERIOD: Duration = Duration::from_secs(5);

/// The flags that select a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ClusterFlags {
    /// Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's service account].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig context [default: the current context].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// A cluster that was selected. Nothing has been sent to it yet.
#[derive(Clone)]
pub struct Cluster {
    /// How to connect to it.
    pub config: Config,
    /// The kubeconfig context it was read from, if any.
    context: Option<String>,
}

impl ClusterFlags {
    /// Reads the kubeconfig, or the pod's service account.
    pub async fn load(&self) -> Result<Cluster, String> {
        match &self.kubeconfig {
            Some(file) => {
                let error = |error: KubeconfigError| unusable(file, &error);
                self.select(Kubeconfig::read_from(file).map_err(error)?).await.map_err(error)
            }
            None => self.infer().await,
        }
    }

    async fn infer(&self) -> Result<Cluster, String> {
        let cluster = match Kubeconfig::read() {
            Ok(kubeconfig) => self.select(kubeconfig).await,
            Err(error) => Err(error),
        };
        let kubeconfig = match cluster {
            Ok(cluster) => return Ok(cluster),
            Err(error) => error,
        };
        if let Some(context) = &self.context {
            return Err(format!("cannot use context {context:?}: {kubeconfig}"));
        }
        let config = Config::incluster().map_err(|pod| {
            format!(
                "no cluster to connect to: there is no usable kubeconfig ({kubeconfig}) and no service account of a \
                 pod ({pod}); pass --kubeconfig or set KUBECONFIG"
            )
        })?;
        Ok(Cluster { config, context: None })
    }

    async fn select(&self, kubeconfig: Kubeconfig) -> Result<Cluster, KubeconfigError> {
        let context = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Ok(Cluster { config: Config::from_custom_kubeconfig(kubeconfig, &options).await?, context })
    }
}

fn unusable(file: &Path, error: &KubeconfigError) -> String {
    // This error names the file already.
    if let KubeconfigError::ReadConfig(error, _) = error {
        return format!("cannot read the kubeconfig {}: {error}", file.display());
    }
    format!("cannot use the kubeconfig {}: {error}", file.display())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerVersion {
    git_version: String,
}

impl Cluster {
    /// A cluster at a URL, without credentials.
    pub fn at(url: Uri) -> Cluster {
        Cluster { config: Config::new(url), context: None }
    }

    /// The same cluster at another URL, given by a flag.
    pub fn with_url(mut self, flag: &str, url: &str) -> Result<Cluster, String> {
        self.config.cluster_url = parse_url(flag, url)?;
        Ok(self)
    }

    /// A client for the cluster.
    pub fn client(&self) -> Result<Client, String> {
        bindery_runtime::client(self.config.clone()).map_err(|error| format!("cannot connect to {self}: {error}"))
    }

    /// The server's version; `None` if it does not answer with one. An error if it cannot be
    /// reached, or does not accept the credentials.
    pub async fn version(&self, client: &Client) -> Result<Option<String>, String> {
        let request = Request::get("/version").body(Body::empty()).map_err(|error| error.to_string())?;
        let answer = async {
            let response = client.send(request).await?;
            Ok((response.status(), response.into_body().collect_bytes().await?))
        };
        let (status, body) = match timeout(CALL_DEADLINE, answer).await {
            Err(_) => return Err(format!("cannot reach {self}: no answer within {CALL_DEADLINE:?}")),
            Ok(Err::<_, kube::Error>(error)) => {
                return Err(format!("cannot reach {self}: {}", connection_error(&error)));
            }
            Ok(Ok(answer)) => answer,
        };
        if status == StatusCode::UNAUTHORIZED {
            return Err(format!(
                "cannot log in to {self}: the server does not accept the credentials; they are missing, expired or \
                 of another cluster"
            ));
        }
        Ok(serde_json::from_slice::<ServerVersion>(&body).ok().map(|version| version.git_version))
    }

    /// Logs the server's version in the background, or once why the server cannot be reached. The
    /// task ends with the version, once the server answers.
    pub fn log_version(self, client: Client) -> JoinHandle<Option<String>> {
        tokio::spawn(async move {
            let (server, context) = (self.url(), self.context.clone());
            let mut was_logged = false;
            loop {
                match self.version(&client).await {
                    Ok(version) => {
                        tracing::info!(server, context, version, "connected to the API server");
                        return version;
                    }
                    Err(error) if was_logged => tracing::debug!(%error, "API server still unavailable"),
                    Err(error) => tracing::warn!(%error, "API server unavailable, retrying"),
                }
                was_logged = true;
                sleep(RETRY_PERIOD).await;
            }
        })
    }

    fn url(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }
}

/// `https://10.0.0.1:6443 (context "prod")`
impl std::fmt::Display for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url())?;
        match &self.context {
            Some(context) => write!(f, " (context {context:?})"),
            None => Ok(()),
        }
    }
}

/// Parses a URL given by a flag.
pub fn parse_url(flag: &str, url: &str) -> Result<Uri, String> {
    url.parse().map_err(|error| format!("{flag}={url}: not a URL: {error}"))
}
