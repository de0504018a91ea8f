//! Bodies of answers: a whole, a list that is put together while it is sent, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::rows::Rows;

/// How much is put together before it is sent: large enough that sending costs little, small enough that a client that reads
/// slowly does not cost much.
pub const CHUNK_BYTES: usize = 64 << 10;

/// The body of an answer.
pub enum Body {
    /// All of it.
    Whole(Bytes),
    /// The items of a list, which are encoded as the client takes them.
    Rows(Box<Rows>),
    /// Events, as they come.
    Events(Receiver<Bytes>),
}

impl Body {
    /// No body.
    pub fn empty() -> Body {
        Body::Whole(Bytes::new())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Body::Whole(bytes) if bytes.is_empty() => None,
            Body::Whole(bytes) => Some(std::mem::take(bytes)),
            Body::Rows(rows) => rows.next_chunk(CHUNK_BYTES),
            Body::Events(events) => match events.poll_recv(context) {
                Poll::Ready(chunk) => chunk,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_empty(),
            Body::Rows(_) | Body::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Rows(_) | Body::Events(_) => SizeHint::default(),
        }
    }
}
