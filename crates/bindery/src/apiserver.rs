//! `bindery apiserver`: the embedded API server.

use std::path::PathBuf;

use bindery_apiserver::host::{Config, Server};
use bindery_runtime::shutdown_signal;

use crate::listen::ListenAddress;
use crate::stdout;

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
            ..Config::in_memory()
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

/// Runs the API server until SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), String> {
    let server = args.start().await?;
    let ended = tokio::select! {
        stopped = shutdown_signal() => stopped,
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
    use super::shell_word;

    #[test]
    fn path_with_a_space_is_quoted() {
        assert_eq!(shell_word("/run/user/0/bindery/kubeconfig"), "/run/user/0/bindery/kubeconfig");
        assert_eq!(shell_word("/my run/it's"), r"'/my run/it'\''s'");
    }
}
