//! A proxy before an API server that troubles whoever calls through it: refused, slow and lost answers, and watches that break.

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

/// What happened on the way.
#[derive(Default)]
pub struct Counts {
    /// Writes that the server carried out.
    pub writes: AtomicUsize,
    /// Writes and reads that were troubled, by kind of trouble.
    pub conflicts: AtomicUsize,
    pub busy: AtomicUsize,
    pub failures: AtomicUsize,
    pub slow: AtomicUsize,
    pub lost: AtomicUsize,
    /// Watches, and those that were cut, and those that were told that their revision is gone.
    pub watches: AtomicUsize,
    pub cut: AtomicUsize,
    pub forgotten: AtomicUsize,
    /// Watches that were never answered.
    pub silent: AtomicUsize,
}

/// Whoever called has lost the connection.
#[derive(Debug)]
pub struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Troubles {
    /// Everything, now and then.
    All,
    /// Every watch is told at once that its revision is gone.
    ForgetsAtOnce,
}

struct Inner {
    upstream: Client,
    troubles: Troubles,
    dice: AtomicU64,
    counts: Counts,
}

/// A proxy, for as long as it is held.
pub struct Proxy {
    address: SocketAddr,
    inner: Arc<Inner>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Starts one. The seed says when something goes wrong.
    pub async fn start(upstream: Client, troubles: Troubles, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner { upstream, troubles, dice: AtomicU64::new(seed), counts: Counts::default() });
        let mut serving = JoinSet::new();
        let shared = Arc::clone(&inner);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let inner = Arc::clone(&shared);
                let service = service_fn(move |request| serve(Arc::clone(&inner), request));
                // A connection that ends in an error is one that was cut.
                connections.spawn(async move {
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Proxy { address, inner, _serving: serving }
    }

    /// Writes a kubeconfig for it: plain HTTP, and no user.
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
    /// A number below 100: the next of the seed's (splitmix64).
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
        // Leases and events are written too, and not counted.
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
        return match inner.troubles {
            Troubles::All => watch(&inner, request).await,
            Troubles::ForgetsAtOnce => Ok(Response::new(Body::from(GONE))),
        };
    }
    if inner.troubles == Troubles::ForgetsAtOnce {
        return inner.forward(request).await;
    }
    let (counts, is_write) = (&inner.counts, request.method() != Method::GET);
    match inner.percent() {
        0..5 if is_write => {
            one_more(&counts.conflicts);
            Ok(refusal(StatusCode::CONFLICT, "Conflict"))
        }
        5..10 => {
            one_more(&counts.busy);
            let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
            Ok(response)
        }
        10..15 => {
            one_more(&counts.failures);
            Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
        }
        15..25 => {
            one_more(&counts.slow);
            tokio::time::sleep(Duration::from_millis(300)).await;
            inner.forward(request).await
        }
        25..30 => {
            one_more(&counts.lost);
            let answer = inner.forward(request).await?;
            // The server has done it all, and nobody hears of it.
            let _ = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
            Err(Cut)
        }
        30..33 => {
            // The server has failed after it did it.
            one_more(&counts.failures);
            let answer = inner.forward(request).await?;
            let _ = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
            Ok(refusal(StatusCode::GATEWAY_TIMEOUT, "Timeout"))
        }
        _ => inner.forward(request).await,
    }
}

/// What becomes of a watch.
#[derive(Clone, Copy)]
enum Fate {
    Refused,
    Silent,
    Cut,
    Forgotten,
}

/// What comes after a piece of a watch.
enum Then {
    More,
    Cut,
    End,
}

/// The first watches are those of every kind; what follows are those where things happen.
fn fate(number: usize) -> Fate {
    match number {
        // Once, because whoever waits for an answer waits for long.
        11 => Fate::Silent,
        _ if number % 8 == 6 => Fate::Refused,
        _ if number.is_multiple_of(4) => Fate::Forgotten,
        _ => Fate::Cut,
    }
}

/// A watch that breaks after some pieces, in one way or the other, or never begins.
async fn watch(inner: &Arc<Inner>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let fate = fate(inner.counts.watches.fetch_add(1, Ordering::Relaxed));
    let after = inner.percent() / 5;
    match fate {
        Fate::Refused => {
            one_more(&inner.counts.failures);
            return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
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
            // Half a frame is left behind by a connection that is cut; what a server says stands after a whole one.
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

fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected by the test", "reason": reason, "code": status.as_u16(),
    });
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}
