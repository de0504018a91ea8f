//! `bindery apiserver`: the embedded API server.

mod snapshot;

use std::path::PathBuf;

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_apiserver::http::Limits;
use bindery_model::Quantity;
use bindery_runtime::shutdown_signal;

use crate::listen::ListenAddress;
use crate::stdout;

/// Flags of `bindery apiserver`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CommandArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    server: Args,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a consistent copy of a running server into a data directory
    ///
    /// The server keeps running and accepts writes. Another one can be started from the copy with
    /// --data-dir. The copy contains the server's keys, and is as secret as a kubeconfig.
    Snapshot(snapshot::Args),
}

impl CommandArgs {
    /// Whether a server is run, rather than a command that ends on its own.
    pub fn serves(&self) -> bool {
        self.command.is_none()
    }
}

/// Flags of the embedded API server, shared with `bindery up`.
#[derive(clap::Args)]
#[group(id = "server")]
pub struct Args {
    /// Address of the API server: HOST:PORT, or port 0 for any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: ListenAddress,

    /// Allow --listen on an address that other machines can reach. The kubeconfig grants full
    /// access to everyone who has it.
    #[arg(long)]
    allow_remote: bool,

    /// Host name or IP address that remote clients use, for the server's certificate; can be
    /// repeated. With --allow-remote, the addresses and the name of this host are included anyway.
    #[arg(long, value_name = "NAME")]
    tls_san: Vec<String>,

    /// File to add the administrator's kubeconfig to, with mode 0600. Contexts of others in it are
    /// kept, and the new context becomes the current one [default: bindery/kubeconfig in
    /// $XDG_RUNTIME_DIR, $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,

    /// Store objects and keys in this directory, which is created if needed. Acknowledged writes
    /// survive a crash and a power failure, and the kubeconfig stays valid [default: in memory
    /// only].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Maximum number of open connections. Further ones are closed.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Maximum number of requests in flight, without watches. Further ones get a 429.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests)]
    max_requests_inflight: usize,
    /// Maximum number of open watches. Further ones get a 429.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().watches)]
    max_watches: usize,
    /// Size of all objects at which none can be created, nor grow; the response is a 507.
    #[arg(long, value_name = "QUANTITY", default_value = "2Gi", value_parser = store_size)]
    max_store_size: usize,

    /// File to append an audit event to for every response, as a line of JSON (audit.k8s.io/v1,
    /// level Metadata) [default: no audit log].
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Size in MiB at which the audit log is renamed to FILE.1, which is replaced, and a new one is
    /// started.
    #[arg(long, value_name = "MIB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    audit_log_maxsize: u64,
}

fn store_size(text: &str) -> Result<usize, String> {
    let size: Quantity = text.parse().map_err(|error| format!("{error}"))?;
    usize::try_from(size.units()).ok().filter(|size| *size > 0).ok_or_else(|| "it is not a positive size".to_owned())
}

impl Args {
    /// Starts the server, and prints its URL and the path of the kubeconfig.
    pub async fn start(self) -> Result<Server, String> {
        let kubeconfig = match self.write_kubeconfig {
            Some(file) => std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))?,
            None => Config::default_kubeconfig()?,
        };
        let addresses = self.listen.resolve().await?;
        let config = Config {
            listen: *addresses.first().ok_or_else(|| format!("cannot listen on {}: no address", self.listen))?,
            allow_remote: self.allow_remote,
            tls_sans: self.tls_san,
            kubeconfig: Some(kubeconfig.clone()),
            data_dir: self.data_dir,
            settings: Settings { store_bytes: self.max_store_size, ..Settings::default() },
            limits: Limits {
                connections: self.max_connections,
                requests: self.max_requests_inflight,
                watches: self.max_watches,
                ..Limits::default()
            },
            audit_log: self.audit_log_path,
            audit_log_bytes: self.audit_log_maxsize << 20,
        };
        let server = Server::start(config).await?;
        let (address, file) = (server.address(), shell_word(&kubeconfig.to_string_lossy()));
        let context = server.context().map_or("", |(_, context)| context);
        tracing::info!(server = %format_args!("https://{address}"), context, "API server started");
        // Only a second server in the same file needs its name.
        let hint = if context == "bindery" { String::new() } else { format!("# kubectl --context {context}\n") };
        stdout::print(&format!("serves https://{address}\nexport KUBECONFIG={file}\n{hint}"))?;
        Ok(server)
    }
}

/// Runs the API server until SIGTERM or SIGINT, or a command on a running one.
pub async fn run(args: CommandArgs) -> Result<(), String> {
    if let Some(Command::Snapshot(args)) = args.command {
        return snapshot::run(args).await;
    }
    let stop = shutdown_signal();
    let server = args.server.start().await?;
    let ended = tokio::select! {
        stopped = stop => stopped,
        reason = server.failed() => return Err(storage_failed(&reason)),
    };
    server.stop().await;
    ended
}

/// The error after which the server cannot store anything more.
pub fn storage_failed(reason: &str) -> String {
    format!("the API server stopped because it cannot write to its data directory: {reason}")
}

/// A path, quoted if a shell would split or expand it.
fn shell_word(path: &str) -> String {
    let is_plain = path.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+:@%,=".contains(letter));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::{shell_word, store_size};

    #[test]
    fn the_size_of_the_store_is_a_positive_quantity() {
        assert_eq!(store_size("1Ki"), Ok(1024));
        for invalid in ["0", "-1Gi", "10GB", "much"] {
            assert!(store_size(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn path_with_a_space_is_quoted() {
        assert_eq!(shell_word("/run/user/0/bindery/kubeconfig"), "/run/user/0/bindery/kubeconfig");
        assert_eq!(shell_word("/my run/it's"), r"'/my run/it'\''s'");
    }
}
