//! A proxy in front of an API server that injects faults: rejected, slow and lost responses, and
//! broken watches.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Counts of what the proxy did.
#[derive(Default)]
pub struct Counts {
    /// Writes that the server executed.
    pub writes: AtomicUsize,
    /// Writes and reads with a fault, by kind of fault.
    pub conflicts: AtomicUsize,
    pub busy: AtomicUsize,
    pub failures: AtomicUsize,
    pub slow: AtomicUsize,
    pub lost: AtomicUsize,
    /// All watches, those that were cut, and those that were answered with 410 Gone.
    pub watches: AtomicUsize,
    pub cut: AtomicUsize,
    pub forgotten: AtomicUsize,
    /// Watches that got no response.
    pub silent: AtomicUsize,
}

/// The client's connection is closed.
#[derive(Debug)]
pub struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

/// The faults to inject.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Every kind, at random.
    All,
    /// Every watch is answered with 410 Gone.
    ForgetsAtOnce,
}

struct Inner {
    upstream: Client,
    faults: Faults,
    dice: AtomicU64,
    counts: Counts,
}

/// A running proxy, stopped on drop.
pub struct Proxy {
    address: SocketAddr,
    inner: Arc<Inner>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy. The seed determines the faults.
    pub async fn start(upstream: Client, faults: Faults, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner { upstream, faults, dice: AtomicU64::new(seed), counts: Counts::default() });
        let mut serving = JoinSet::new();
        let shared = Arc::clone(&inner);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let inner = Arc::clone(&shared);
                let service = service_fn(move |request| serve(Arc::clone(&inner), request));
                // Errors are connections that were cut on purpose.
                connections.spawn(async move {
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Proxy { address, inner, _serving: serving }
    }

    /// Writes a kubeconfig for it: plain HTTP without a user.
    pub fn kubeconfig(&self, file: PathBuf) -> PathBuf {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: proxy\n\
             clusters: [{{name: proxy, cluster: {{server: \"http://{}\"}}}}]\n\
             contexts: [{{name: proxy, context: {{cluster: proxy, user: \"\"}}}}]\n",
            self.address
        );
        std::fs::write(&file, text).expect("a kubeconfig");
        file
    }

    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }
}

impl Inner {
    /// The next pseudo-random number below 100 (splitmix64).
    fn percent(&self) -> u64 {
        let mut z = self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % 100
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
        let (mut parts, body) = request.into_parts();
        let body = axum::body::to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Cut)?;
        parts.headers.remove(http::header::HOST);
        parts.headers.remove(http::header::CONNECTION);
        // Leases and events are not counted.
        let may_write = parts.method != Method::GET && parts.uri.path().contains("/persistentvolume");
        let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
        let mut response = self.upstream.send(request).await.map_err(|_| Cut)?;
        response.headers_mut().remove(http::header::CONNECTION);
        if may_write && response.status().is_success() {
            self.counts.writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(response.map(Body::new))
    }
}

fn one_more(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

async fn serve(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    if request.uri().query().unwrap_or_default().contains("watch=") {
        return match inner.faults {
            Faults::All => watch(&inner, request).await,
            Faults::ForgetsAtOnce => Ok(Response::new(Body::from(GONE))),
        };
    }
    if inner.faults == Faults::ForgetsAtOnce {
        return inner.forward(request).await;
    }
    let (counts, is_write) = (&inner.counts, request.method() != Method::GET);
    match inner.percent() {
        0..5 if is_write => {
            one_more(&counts.conflicts);
            Ok(rejection(StatusCode::CONFLICT, "Conflict"))
        }
        5..10 => {
            one_more(&counts.busy);
            let mut response = rejection(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
            Ok(response)
        }
        10..15 => {
            one_more(&counts.failures);
            Ok(rejection(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
        }
        15..25 => {
            one_more(&counts.slow);
            tokio::time::sleep(Duration::from_millis(300)).await;
            inner.forward(request).await
        }
        25..30 => {
            one_more(&counts.lost);
            let answer = inner.forward(request).await?;
            // The server has executed the request; the response is lost.
            let _ = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
            Err(Cut)
        }
        30..33 => {
            // The server has executed the request, and reports an error.
            one_more(&counts.failures);
            let answer = inner.forward(request).await?;
            let _ = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
            Ok(rejection(StatusCode::GATEWAY_TIMEOUT, "Timeout"))
        }
        _ => inner.forward(request).await,
    }
}

/// How a watch ends.
#[derive(Clone, Copy)]
enum Fate {
    Refused,
    Silent,
    Cut,
    Forgotten,
}

/// What follows a chunk of a watch.
enum Then {
    More,
    Cut,
    End,
}

/// The first watches cover every kind; later ones are those with events.
fn fate(number: usize) -> Fate {
    match number {
        // Only once, because the client waits long for a response.
        11 => Fate::Silent,
        _ if number % 8 == 6 => Fate::Refused,
        _ if number.is_multiple_of(4) => Fate::Forgotten,
        _ => Fate::Cut,
    }
}

/// A watch that breaks after some chunks, or never starts.
async fn watch(inner: &Arc<Inner>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let fate = fate(inner.counts.watches.fetch_add(1, Ordering::Relaxed));
    let after = inner.percent() / 5;
    match fate {
        Fate::Refused => {
            one_more(&inner.counts.failures);
            return Ok(rejection(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        }
        Fate::Silent => {
            one_more(&inner.counts.silent);
            return std::future::pending().await;
        }
        Fate::Cut | Fate::Forgotten => {}
    }
    let response = inner.forward(request).await?;
    let inner = Arc::clone(inner);
    Ok(response.map(|body| {
        let pieces = body.into_data_stream().enumerate().map(move |(number, piece)| {
            let Ok(piece) = piece else { return (Bytes::new(), Then::Cut) };
            let is_time = number as u64 >= after;
            // A cut connection ends within a frame; a status from the server follows a complete
            // one.
            if is_time && matches!(fate, Fate::Cut) {
                one_more(&inner.counts.cut);
                (piece.slice(..piece.len() / 2), Then::Cut)
            } else if is_time && piece.ends_with(b"\n") {
                one_more(&inner.counts.forgotten);
                ([&piece[..], GONE].concat().into(), Then::End)
            } else {
                (piece, Then::More)
            }
        });
        let until_the_end = pieces.scan(false, |is_over, (piece, then)| {
            let was_over = std::mem::replace(is_over, matches!(then, Then::End));
            std::future::ready((!was_over).then_some((piece, then)))
        });
        let broken = until_the_end.flat_map(|(piece, then)| {
            let cut = matches!(then, Then::Cut).then_some(Err(Cut));
            futures::stream::iter(std::iter::once(Ok(piece)).chain(cut))
        });
        Body::from_stream(broken)
    }))
}

const GONE: &[u8] = b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
    \"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n";

fn rejection(status: StatusCode, reason: &str) -> Response<Body> {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected by the test", "reason": reason, "code": status.as_u16(),
    });
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}
