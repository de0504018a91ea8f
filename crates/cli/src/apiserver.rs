//! `bindery apiserver`: the embedded API server, alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use bindery_apiserver::host::{Config, Server};
use tokio::signal::unix::{SignalKind, signal};

/// How the API server is run.
#[derive(clap::Args)]
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

/// Runs the API server until it is told to stop, by SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), String> {
    let kubeconfig = match args.write_kubeconfig {
        Some(file) => std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => Config::default_kubeconfig()?,
    };
    let config = Config {
        listen: args.listen,
        allow_remote: args.allow_remote,
        kubeconfig: Some(kubeconfig.clone()),
        data: args.data_dir,
        ..Config::in_memory()
    };
    // Asked for before anything is started, so that a signal that comes early is not lost.
    let unheard = |error: std::io::Error| format!("cannot listen for signals: {error}");
    let mut terminated = signal(SignalKind::terminate()).map_err(unheard)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(unheard)?;
    let server = Server::start(config).await?;
    crate::explain::print(&format!(
        "serves https://{}\nexport KUBECONFIG={}\n",
        server.address(),
        shell_word(&kubeconfig.to_string_lossy())
    ))?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
        why = server.failed() => return Err(format!("nothing more can be kept, so the server ends: {why}")),
    }
    tracing::info!("stops");
    server.stop().await;
    Ok(())
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
