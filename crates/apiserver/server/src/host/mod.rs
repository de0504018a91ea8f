//! A server: keys, a port, a kubeconfig, and the store behind them.

pub(crate) mod files;
pub mod keys;
mod kubeconfig;
mod tls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, Settings};
use crate::disk;
use crate::http::{self, Journal, Moments, Shared};
use keys::Keys;

/// How long connections may take to end when the server is stopped.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// How a server is to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Whether others than this machine may be let in.
    pub allow_remote: bool,
    /// Where the administrator's kubeconfig is written; nowhere if there is none.
    pub kubeconfig: Option<PathBuf>,
    /// A folder that objects and keys are kept in from one start to the next; without one they are in memory, and new at every start.
    pub data: Option<PathBuf>,
    /// How an empty store is set up.
    pub settings: Settings,
}

impl Config {
    /// On any free port of this machine, with everything in memory, and no file written.
    pub fn in_memory() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            allow_remote: false,
            kubeconfig: None,
            data: None,
            settings: Settings::default(),
        }
    }

    /// Where a kubeconfig is written if nobody says where.
    pub fn default_kubeconfig() -> Result<PathBuf, String> {
        kubeconfig::default_path()
    }
}

/// A server that runs. It ends when it is stopped, or with the runtime it was started on.
pub struct Server {
    address: SocketAddr,
    kubeconfig: String,
    kubeconfig_file: Option<PathBuf>,
    journal: Option<Arc<dyn Journal>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server: with what its folder holds, if it has one, and else with an empty store. It answers when this returns.
    pub async fn start(config: Config) -> Result<Server, String> {
        refuse_remote(&config)?;
        let moment = Moments::default().next();
        let settings = config.settings.clone();
        let Some(folder) = config.data.clone() else {
            return Server::start_with(config, Api::new(settings, &moment), None).await;
        };
        let opened = tokio::task::spawn_blocking(move || disk::open(&folder, settings, &moment)).await;
        let (api, disk) = opened.map_err(|error| format!("the data folder could not be read: {error}"))??;
        Server::start_with(config, api, Some(Arc::new(disk))).await
    }

    /// Starts a server with a store, and with whatever makes it durable.
    pub async fn start_with(config: Config, api: Api, journal: Option<Arc<dyn Journal>>) -> Result<Server, String> {
        refuse_remote(&config)?;
        let listener = TcpListener::bind(config.listen).await.map_err(|error| unheard(config.listen, &error))?;
        let address = listener.local_addr().map_err(|error| unheard(config.listen, &error))?;
        if let Some(folder) = &config.data {
            files::make_private_folder(folder)?;
        }
        let keys = Keys::create(address.ip(), config.data.as_deref())?;
        let tls = TlsAcceptor::from(tls::config(&keys)?);
        let kubeconfig = kubeconfig::text(address, &keys);
        if let Some(file) = &config.kubeconfig {
            if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                files::make_private_folder(folder)?;
            }
            files::write_private(file, &kubeconfig)?;
        }
        let (stop, stops) = watch::channel(false);
        let shared = Arc::new(Shared::new(api, journal.clone(), keys.token, address, stops));
        tokio::spawn(http::tend(Arc::clone(&shared)));
        let serving = tokio::spawn(http::serve(listener, tls, shared));
        Ok(Server { address, kubeconfig, kubeconfig_file: config.kubeconfig, journal, stop, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig. It holds keys.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Where that was written.
    pub fn kubeconfig_file(&self) -> Option<&Path> {
        self.kubeconfig_file.as_deref()
    }

    /// Comes back, with the reason, when nothing more can be made durable. Whoever runs the server should end then: what it holds in memory
    /// is no longer what a restart would find.
    pub async fn failed(&self) -> String {
        match &self.journal {
            // No revision comes after this one, so it never is persisted.
            Some(journal) => journal.persisted(u64::MAX).await.err().unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// Stops it: streams end, requests under way are answered, and no more are taken. Its folder is free when this returns.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(STOPS_WITHIN, self.serving).await.is_err() {
            tracing::warn!("some connections did not end in time");
            abort.abort();
        }
        if let Some(journal) = self.journal {
            let closed = tokio::task::spawn_blocking(move || journal.close()).await;
            closed.unwrap_or_else(|error| tracing::error!(%error, "the data folder could not be closed"));
        }
    }
}

fn refuse_remote(config: &Config) -> Result<(), String> {
    if config.listen.ip().is_loopback() || config.allow_remote {
        return Ok(());
    }
    Err(format!(
        "{} can be reached from other machines, and whoever holds the kubeconfig may do everything: \
         listen on 127.0.0.1, or say --allow-remote too if that is meant",
        config.listen
    ))
}

fn unheard(address: SocketAddr, error: &std::io::Error) -> String {
    let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let hint = if is_taken { "; --listen 127.0.0.1:0 takes any port that is free" } else { "" };
    format!("cannot listen on {address}: {error}{hint}")
}
