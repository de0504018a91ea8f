//! A TCP proxy that delays every byte on its way to the API server by a fixed time.
//!
//! It forwards bytes without interpreting them, so TLS passes through. Requests are delayed;
//! responses are not.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep_until};

/// Forwards to a loopback port until the runtime stops. Returns the port to connect to.
pub async fn forward(to: u16, delay: Duration) -> std::io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(async move {
                // Both ends notice a broken connection themselves.
                let _ = connect(client, to, delay).await;
            });
        }
    });
    Ok(port)
}

async fn connect(client: TcpStream, to: u16, delay: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::spawn(carry(from_client, to_server, delay));
    copy(&mut from_server, &mut to_client).await.map(drop)
}

/// Copies bytes with the delay; reading continues while earlier bytes are still delayed.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (send, mut receive) = unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((due, bytes)) = receive.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if send.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_delayed_and_responses_are_not() {
        let server = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = server.local_addr().expect("an address").port();
        let delay = Duration::from_millis(50);
        let mut client = TcpStream::connect(("127.0.0.1", forward(port, delay).await.expect("a proxy")))
            .await
            .expect("a connection");
        let (mut accepted, _) = server.accept().await.expect("a client");
        let start = Instant::now();
        client.write_all(b"ping").await.expect("written");
        let mut got = [0; 4];
        accepted.read_exact(&mut got).await.expect("read");
        assert!(&got == b"ping" && start.elapsed() >= delay);
        accepted.write_all(b"pong").await.expect("answered");
        client.read_exact(&mut got).await.expect("read");
        assert_eq!(&got, b"pong");
    }
}
