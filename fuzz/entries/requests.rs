//! HTTP requests as bytes, to a new server: no request makes it panic, and it responds to the next.
//!
//! Requests are separated by the byte 0x1e. Each has a line with method and target, lines with
//! headers, an empty line, and a body.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bindery_apiserver::Api;
use bindery_apiserver::api::Settings;
use bindery_apiserver::disk::SnapshotKeys;
use bindery_apiserver::http::{self as server, Client, ContextSource, Limits, ServerInfo, Shared};
use bytes::Bytes;
use http::Request;
use hyper::body::{Body as _, Frame};

const REQUESTS_MAX: usize = 8;
/// Reads of future revisions wait, and watches do not end.
const PATIENCE: Duration = Duration::from_millis(20);
const STORE_BYTES: usize = 1 << 20;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// A request body.
struct Whole(Bytes);

impl hyper::body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }
}

/// Sends the requests of an input.
pub fn check(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let settings = Settings { store_bytes: STORE_BYTES, ..Settings::default() };
        let api = Api::new(settings, &ContextSource::default().next());
        let (_stop, shutdown) = tokio::sync::watch::channel(false);
        let info =
            ServerInfo { address: LOOPBACK, keys: SnapshotKeys::default(), limits: Limits::default(), audit: None };
        let shared = Arc::new(Shared::new(api, None, info, shutdown));
        for request in bytes.split(|byte| *byte == 0x1e).take(REQUESTS_MAX).filter_map(parse) {
            send(&shared, request).await;
        }
        let (background, _) = shared.write(None, |api| Ok(api.run_background_tasks(&shared.context())));
        background.expect("background tasks do not panic");
        let ready = Request::get("/readyz").body(Whole(Bytes::new())).expect("a request");
        assert_eq!(send(&shared, ready).await, Some(200));
    });
}

fn parse(bytes: &[u8]) -> Option<Request<Whole>> {
    let head_end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = bytes.split_at(head_end);
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::builder().method(&first[..space]).uri(&first[space + 1..]);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(Whole(Bytes::copy_from_slice(body.get(2..).unwrap_or_default()))).ok()
}

/// The status code of the response, if there was one in time. Its body is read, too.
async fn send(shared: &Arc<Shared>, request: Request<Whole>) -> Option<u16> {
    let client = Client { address: LOOPBACK, trusted: true };
    let answered = async {
        let answer = server::answer(shared, client, request).await;
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        let mut read = Vec::new();
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            read.extend_from_slice(frame.expect("it cannot fail").data_ref().expect("data"));
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        assert!(!text.contains("caused apiserver to panic"), "{text}");
        status
    };
    tokio::time::timeout(PATIENCE, answered).await.ok()
}
