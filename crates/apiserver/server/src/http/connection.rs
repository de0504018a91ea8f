//! Connections: TLS, and HTTP/1.1 or HTTP/2, as the client prefers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, BusyBody};
use super::request::{self, Client};
use super::shared::Shared;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Upstream's limit.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(32);
/// Go's limit for the headers of a request.
const HEADERS_BYTES_MAX: u32 = 1 << 20;
/// How long an idle connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Upstream's limit.
const STREAMS_MAX: u32 = 250;
/// A lost client is detected after two intervals.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long to wait after a failed accept, for example with too many open files: it would fail
/// again immediately.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves until shutdown; returns when the last connection has ended.
pub async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut shutdown = shared.shutdown();
    // Every connection holds a sender: the channel closes when the last one is dropped.
    let (open, mut ended) = mpsc::channel::<Infallible>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.changed() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let Some(slot) = shared.slots.connection() else {
                    shared.metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(%address, "too many connections, closing the new one");
                    continue;
                };
                let (tls, shared, open) = (tls.clone(), Arc::clone(&shared), open.clone());
                tokio::spawn(async move {
                    connection(stream, address, tls, shared).await;
                    drop((slot, open));
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(open);
    ended.recv().await;
}

async fn connection(stream: TcpStream, address: SocketAddr, tls: TlsAcceptor, shared: Arc<Shared>) {
    // Responses are written whole, so waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    let shutdown = shared.shutdown();
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    let (_, session) = stream.get_ref();
    // TLS has verified that the certificate is one of ours.
    let client = Client { address, trusted: session.peer_certificates().is_some() };
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let idle_time = shared.slots.limits().idle;
    let activity = Activity::new();
    let busy = Arc::clone(&activity);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (shared, busy) = (Arc::clone(&shared), busy.begin());
        async move {
            let reply = request::answer(&shared, client, request).await;
            Ok::<_, Infallible>(reply.map(|body| BusyBody { body, _busy: busy }))
        }
    });
    let idle = activity.idle(idle_time);
    let io = TokioIo::new(stream);
    let served = if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .serve_connection(io, service);
        until_stopped!(connection, shutdown, idle)
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_TIMEOUT)
            .max_buf_size(HEADERS_BYTES_MAX as usize)
            .serve_connection(io, service);
        until_stopped!(connection, shutdown, idle)
    };
    if let Err(error) = served {
        tracing::debug!(%error, "connection failed");
    }
}

/// Serves a connection. On shutdown it finishes requests in flight and accepts no more; an idle
/// connection is closed. A macro, because the two connection types share no trait for this.
macro_rules! until_stopped {
    ($connection:ident, $shutdown:ident, $idle:ident) => {{
        let mut shutdown: Receiver<bool> = $shutdown;
        let mut connection = std::pin::pin!($connection);
        tokio::select! {
            served = connection.as_mut() => served,
            _ = shutdown.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = $idle => {
                connection.as_mut().graceful_shutdown();
                // A client that is still sending headers is not waited for.
                tokio::time::timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
            }
        }
    }};
}
use until_stopped;
