//! `bindery apiserver`: the embedded API server, alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use bindery_apiserver::host::{Config, Server};

use bindery_runtime::shutdown_signal;

/// How the API server is run.
#[derive(clap::Args)]
#[group(id = "server")]
pub struct Args {
    /// Where to listen. Port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// Let other machines in too, if --listen names an address that they reach. Whoever holds the kubeconfig may do everything.
    #[arg(long)]
    allow_remote: bool,

    /// Where to write the administrator's kubeconfig, readable by nobody else. Its path is printed.
    /// [default: bindery/kubeconfig in $XDG_RUNTIME_DIR, $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,

    /// Keep everything in a folder, which is made if need be: what was answered survives a crash and a power failure, and the kubeconfig
    /// stays good. Without it everything is in memory, and gone when the server ends.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Args {
    /// Starts the server, and prints how to reach it.
    pub async fn start(self) -> Result<Server, String> {
        let kubeconfig = match self.write_kubeconfig {
            Some(file) => std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))?,
            None => Config::default_kubeconfig()?,
        };
        let config = Config {
            listen: self.listen,
            allow_remote: self.allow_remote,
            kubeconfig: Some(kubeconfig.clone()),
            data_dir: self.data_dir,
            ..Config::in_memory()
        };
        let server = Server::start(config).await?;
        let (address, file) = (server.address(), shell_word(&kubeconfig.to_string_lossy()));
        crate::explain::print(&format!("serves https://{address}\nexport KUBECONFIG={file}\n"))?;
        Ok(server)
    }
}

/// Runs the API server until it is told to stop, by SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), String> {
    let server = args.start().await?;
    let ended = tokio::select! {
        told = shutdown_signal() => told,
        why = server.failed() => return Err(unkept(&why)),
    };
    server.stop().await;
    ended
}

/// What to say when the disk has failed.
pub fn unkept(why: &str) -> String {
    format!("nothing more can be kept, so the server ends: {why}")
}

/// A path in quotes, if a shell would take it apart.
fn shell_word(path: &str) -> String {
    let is_plain = path.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+:@%,=".contains(letter));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_path_with_a_space_is_quoted() {
        assert_eq!(shell_word("/run/user/0/bindery/kubeconfig"), "/run/user/0/bindery/kubeconfig");
        assert_eq!(shell_word("/my run/it's"), r"'/my run/it'\''s'");
    }
}
