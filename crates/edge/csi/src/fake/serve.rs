//! Serving a fake driver on a socket, with connections that a test can close.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::channel::mpsc;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tonic::transport::Server;

use super::FakeDriver;
use super::twice::Twice;
use crate::proto::controller_server::ControllerServer;
use crate::proto::identity_server::IdentityServer;
use crate::proto::node_server::NodeServer;

/// A served driver. It stops when this is dropped.
pub struct Serving {
    socket: PathBuf,
    tasks: [JoinHandle<()>; 2],
}

impl FakeDriver {
    /// Serves on a socket and replaces an existing one.
    pub fn serve(self: &Arc<Self>, socket: &Path) -> io::Result<Serving> {
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(socket)?;
        let (connections, incoming) = mpsc::unbounded::<io::Result<UnixStream>>();
        let server = Server::builder()
            .add_service(IdentityServer::from_arc(self.clone()))
            .add_service(Twice(ControllerServer::from_arc(self.clone())))
            .add_service(NodeServer::from_arc(self.clone()));
        let served = tokio::spawn(async move {
            server.serve_with_incoming(incoming).await.expect("the fake driver serves");
        });
        let accepted = tokio::spawn(accept(self.clone(), listener, connections));
        Ok(Serving { socket: socket.to_owned(), tasks: [served, accepted] })
    }
}

/// Accepts connections and proxies them, so that they can be closed.
async fn accept(
    fake: Arc<FakeDriver>,
    listener: UnixListener,
    connections: mpsc::UnboundedSender<io::Result<UnixStream>>,
) {
    while let Ok((mut outside, _)) = listener.accept().await {
        let Ok((mut inside, server)) = UnixStream::pair() else { return };
        if connections.unbounded_send(Ok(server)).is_err() {
            return;
        }
        let fake = fake.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = fake.cut.notified() => {}
                _ = copy_bidirectional(&mut outside, &mut inside) => {}
            }
        });
    }
}

impl Serving {
    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        // Open connections stay open until they are cut.
        let _ = std::fs::remove_file(&self.socket);
    }
}
