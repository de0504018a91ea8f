//! A running server: keys, a port, a kubeconfig, and the store.

pub(crate) mod files;
pub mod keys;
mod kubeconfig;
mod names;
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
use crate::http::{self, AUDIT_BYTES_MAX, AuditLog, ContextSource, Journal, Limits, ServerInfo, Shared};
use keys::Keys;
use kubeconfig::Access;
use names::ServerNames;

/// How long connections may take to finish when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 means any free port.
    pub listen: SocketAddr,
    /// Whether to allow an address that other machines can reach.
    pub allow_remote: bool,
    /// Further host names and addresses for the server's certificate.
    pub tls_sans: Vec<String>,
    /// The file to add the administrator's kubeconfig to, if any.
    pub kubeconfig: Option<PathBuf>,
    /// A directory that persists objects and keys. Without one they are in memory, and new at every
    /// start.
    pub data_dir: Option<PathBuf>,
    /// The settings of the store.
    pub settings: Settings,
    /// How much the server does at the same time.
    pub limits: Limits,
    /// The file to record all responses in, if any.
    pub audit_log: Option<PathBuf>,
    /// The size at which that file is rotated.
    pub audit_log_bytes: u64,
}

impl Config {
    /// A free port on loopback, everything in memory, no files.
    pub fn in_memory() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            allow_remote: false,
            tls_sans: Vec::new(),
            kubeconfig: None,
            data_dir: None,
            settings: Settings::default(),
            limits: Limits::default(),
            audit_log: None,
            audit_log_bytes: AUDIT_BYTES_MAX,
        }
    }

    /// The default path of the kubeconfig.
    pub fn default_kubeconfig() -> Result<PathBuf, String> {
        kubeconfig::default_path()
    }
}

/// A running server. It ends when it is stopped, or with its runtime.
pub struct Server {
    address: SocketAddr,
    kubeconfig: String,
    access: Access,
    /// The file with the kubeconfig, and the name of the context in it.
    context: Option<(PathBuf, String)>,
    journal: Option<Arc<dyn Journal>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts a server with the contents of its data directory, or with an empty store. It accepts
    /// requests when this returns.
    pub async fn start(config: Config) -> Result<Server, String> {
        reject_remote(&config)?;
        let context = ContextSource::default().next();
        let settings = config.settings.clone();
        let Some(dir) = config.data_dir.clone() else {
            return Server::start_with(config, Api::new(settings, &context), None).await;
        };
        let opened = tokio::task::spawn_blocking(move || disk::open(&dir, settings, &context)).await;
        let (api, disk) = opened.map_err(|error| format!("cannot read the data directory: {error}"))??;
        Server::start_with(config, api, Some(Arc::new(disk))).await
    }

    /// Starts a server with a store and a journal.
    pub async fn start_with(config: Config, api: Api, journal: Option<Arc<dyn Journal>>) -> Result<Server, String> {
        reject_remote(&config)?;
        let listener = TcpListener::bind(config.listen).await.map_err(|error| listen_error(config.listen, &error))?;
        let address = listener.local_addr().map_err(|error| listen_error(config.listen, &error))?;
        if let Some(dir) = &config.data_dir {
            files::create_private_dir(dir)?;
        }
        let names = ServerNames::of(address.ip(), &config.tls_sans)?;
        let keys = Keys::create(&names, config.data_dir.as_deref())?;
        let tls = TlsAcceptor::from(tls::config(&keys)?);
        let audit = config.audit_log.map(|file| AuditLog::open(file, config.audit_log_bytes)).transpose()?;
        let access = Access::new(address, &keys, config.data_dir.is_none());
        let kubeconfig = access.text()?;
        let context = match config.kubeconfig.clone() {
            Some(file) => Some(with_file(access.clone(), file, |access, file| access.add_to(file)).await?),
            None => None,
        };
        let info = ServerInfo { address, keys: keys.for_snapshots(), limits: config.limits, audit };
        let (stop, shutdown) = watch::channel(false);
        let shared = Arc::new(Shared::new(api, journal.clone(), info, shutdown));
        tokio::spawn(http::run_background_tasks(Arc::clone(&shared)));
        let serving = tokio::spawn(http::serve(listener, tls, shared));
        Ok(Server { address, kubeconfig, access, context, journal, stop, serving })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig. It contains secrets.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The file that the kubeconfig was added to, and the name of the context.
    pub fn context(&self) -> Option<(&Path, &str)> {
        self.context.as_ref().map(|(file, name)| (file.as_path(), name.as_str()))
    }

    /// Returns the reason when nothing more can be persisted. The process should exit then: the
    /// server's memory differs from what a restart would restore.
    pub async fn failed(&self) -> String {
        match &self.journal {
            // This revision is never reached, so the call returns only with an error.
            Some(journal) => journal.persisted(u64::MAX).await.err().unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// Stops the server: ends streams, finishes requests in flight, and accepts no more. The data
    /// directory is unlocked when this returns. A kubeconfig whose keys were in memory is removed
    /// from its file.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(STOP_TIMEOUT, self.serving).await.is_err() {
            tracing::warn!("connections did not end in time, closing them");
            abort.abort();
        }
        if let Some((file, name)) = self.context {
            let removed = with_file(self.access, file, move |access, file| access.remove_from(file, &name)).await;
            removed.map_or_else(|error| tracing::warn!(%error, "removing the kubeconfig failed"), drop);
        }
        if let Some(journal) = self.journal {
            let closed = tokio::task::spawn_blocking(move || journal.close()).await;
            closed.unwrap_or_else(|error| tracing::error!(%error, "closing the data directory failed"));
        }
    }
}

/// Changes a kubeconfig, which may have to wait for another program.
async fn with_file<T: Send + 'static>(
    access: Access,
    file: PathBuf,
    change: impl FnOnce(&Access, &Path) -> Result<T, String> + Send + 'static,
) -> Result<(PathBuf, T), String> {
    let changed = tokio::task::spawn_blocking(move || change(&access, &file).map(|changed| (file, changed))).await;
    changed.map_err(|error| format!("cannot write the kubeconfig: {error}"))?
}

fn reject_remote(config: &Config) -> Result<(), String> {
    if config.listen.ip().is_loopback() || config.allow_remote {
        return Ok(());
    }
    Err(format!(
        "{} can be reached from other machines, and the kubeconfig grants full access: \
         listen on 127.0.0.1, or add --allow-remote to allow this",
        config.listen
    ))
}

fn listen_error(address: SocketAddr, error: &std::io::Error) -> String {
    let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let hint = if is_taken { "; --listen 127.0.0.1:0 uses any free port" } else { "" };
    format!("cannot listen on {address}: {error}{hint}")
}
