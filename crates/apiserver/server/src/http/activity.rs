//! The requests of a connection, by which an idle connection is found.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::body::Body;

/// How many requests a connection has, and since when.
pub struct Activity(watch::Sender<(usize, Instant)>);

impl Activity {
    /// A connection without requests.
    pub fn new() -> Arc<Activity> {
        Arc::new(Activity(watch::Sender::new((0, Instant::now()))))
    }

    /// Begins a request, which ends when the result is dropped.
    pub fn begin(self: &Arc<Activity>) -> Busy {
        self.0.send_modify(|(requests, since)| (*requests, *since) = (*requests + 1, Instant::now()));
        Busy(Arc::clone(self))
    }

    /// Returns when there was no request for some time.
    pub async fn idle(&self, time: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let (requests, since) = *changes.borrow_and_update();
            tokio::select! {
                () = sleep_until(since + time), if requests == 0 => return,
                // The sender is in `self`.
                _ = changes.changed() => {}
            }
        }
    }
}

/// A request in progress.
pub struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.send_modify(|(requests, since)| (*requests, *since) = (*requests - 1, Instant::now()));
    }
}

/// A response body, during which its connection is busy.
pub struct BusyBody {
    pub body: Body,
    pub _busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
