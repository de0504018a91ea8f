//! Connections: TLS, and HTTP/1.1 or HTTP/2 as the client likes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;
use tokio_rustls::TlsAcceptor;

use super::request;
use super::shared::Shared;

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
const HEADERS_WITHIN: Duration = Duration::from_secs(60);
/// What upstream allows.
const STREAMS_MAX: u32 = 250;
/// A client that has vanished without a word is noticed after this long, twice.
const PING_EVERY: Duration = Duration::from_secs(30);
/// FailureEffect a failure to accept, such as when there are too many open files: the listener would fail again at once.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves until it is told to stop; returns when the last connection has ended.
pub async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut stops = shared.stops();
    // Every connection holds one end: when the last is gone, so is the channel.
    let (open, mut ended) = mpsc::channel::<Infallible>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stops.changed() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (tls, shared, open) = (tls.clone(), Arc::clone(&shared), open.clone());
                tokio::spawn(async move {
                    connection(stream, tls, shared).await;
                    drop(open);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(open);
    ended.recv().await;
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) {
    // Answers are written whole: waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let stops = shared.stops();
    let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS failed"),
        Err(_) => return tracing::debug!("a client did not finish its handshake"),
    };
    let (_, session) = stream.get_ref();
    // Whoever showed a certificate showed one of ours: others do not get this far.
    let trusted = session.peer_certificates().is_some();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request: http::Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(request::answer(&shared, trusted, request).await) }
    });
    let io = TokioIo::new(stream);
    let served = if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY)
            .serve_connection(io, service);
        until_stopped!(connection, stops)
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .serve_connection(io, service);
        until_stopped!(connection, stops)
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Serves a connection; when it is told to stop, it lets requests under way finish and takes no more. A macro, because the
/// two kinds of connection share no trait for this.
macro_rules! until_stopped {
    ($connection:ident, $stops:ident) => {{
        let mut stops: Receiver<bool> = $stops;
        let mut connection = std::pin::pin!($connection);
        tokio::select! {
            served = connection.as_mut() => served,
            _ = stops.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    }};
}
use until_stopped;
