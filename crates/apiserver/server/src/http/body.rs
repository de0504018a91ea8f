//! Response bodies: whole, a list that is encoded while it is sent, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::rows::Rows;

/// The size of a chunk: large enough to send efficiently, small enough that slow clients need
/// little memory.
pub const CHUNK_BYTES: usize = 64 << 10;

/// The body of a response.
pub enum Body {
    /// All bytes at once.
    Whole(Bytes),
    /// The items of a list, encoded as the client reads them.
    Rows(Box<Rows>),
    /// Events, as they occur.
    Events(Receiver<Bytes>),
    /// Any other sequence of lines.
    Lines(Box<dyn Iterator<Item = Vec<u8>> + Send>),
}

impl Body {
    /// An empty body.
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
            Body::Lines(lines) => next_lines(lines),
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
            Body::Rows(_) | Body::Events(_) | Body::Lines(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Rows(_) | Body::Events(_) | Body::Lines(_) => SizeHint::default(),
        }
    }
}

/// The next lines, about one chunk.
fn next_lines(lines: &mut dyn Iterator<Item = Vec<u8>>) -> Option<Bytes> {
    let mut chunk = lines.next()?;
    while chunk.len() < CHUNK_BYTES {
        let Some(line) = lines.next() else { break };
        chunk.extend_from_slice(&line);
    }
    Some(chunk.into())
}
