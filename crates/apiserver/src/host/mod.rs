//! A server: keys, a port, a kubeconfig, and the store behind them.

mod files;
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
    /// Where keys are kept from one start to the next; they are new at every start if there is none.
    pub keys: Option<PathBuf>,
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
            keys: None,
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
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server with an empty store. It answers when this returns.
    pub async fn start(config: Config) -> Result<Server, String> {
        let api = Api::new(config.settings.clone(), &Moments::default().next());
        Server::start_with(config, api, None).await
    }

    /// Starts a server with a store, and with whatever makes it durable.
    pub async fn start_with(config: Config, api: Api, journal: Option<Box<dyn Journal>>) -> Result<Server, String> {
        refuse_remote(&config)?;
        let listener = TcpListener::bind(config.listen).await.map_err(|error| unheard(config.listen, &error))?;
        let address = listener.local_addr().map_err(|error| unheard(config.listen, &error))?;
        if let Some(folder) = &config.keys {
            files::make_private_folder(folder)?;
        }
        let keys = Keys::create(address.ip(), config.keys.as_deref())?;
        let tls = TlsAcceptor::from(tls::config(&keys)?);
        let kubeconfig = kubeconfig::text(address, &keys);
        if let Some(file) = &config.kubeconfig {
            if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                files::make_private_folder(folder)?;
            }
            files::write_private(file, &kubeconfig)?;
        }
        let (stop, stops) = watch::channel(false);
        let shared = Arc::new(Shared::new(api, journal, keys.token, address, stops));
        tokio::spawn(http::tend(Arc::clone(&shared)));
        let serving = tokio::spawn(http::serve(listener, tls, shared));
        Ok(Server { address, kubeconfig, kubeconfig_file: config.kubeconfig, stop, serving })
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

    /// Stops it: streams end, requests under way are answered, and no more are taken.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(STOPS_WITHIN, self.serving).await.is_err() {
            tracing::warn!("some connections did not end in time");
            abort.abort();
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
