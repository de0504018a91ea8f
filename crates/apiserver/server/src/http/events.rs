//! Watches: each has a cursor into history, and reads on when there are changes and its client can
//! take them.
//!
//! A slow client delays no other: the server keeps one chunk and a cursor for it. If history no
//! longer reaches back to the cursor, the client gets a 410 and has to list again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::body::{Body, CHUNK_BYTES};
use super::limits::Slot;
use super::reply::{Reply, reply};
use super::shape::{Form, push, write_partial};
use super::shared::Shared;
use crate::api::{Watch, WatchEventType};
use crate::status::Status;

/// How many changes are read while the store is locked.
const CHANGES_PER_READ: usize = 256;
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The last bookmark is sent this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// A watch without a timeout lasts between this long and twice as long, so that clients do not
/// reconnect at the same time.
const DURATION_MIN_SECONDS: u64 = 1800;

/// How long a watch lasts.
pub fn watch_duration(timeout_seconds: Option<i64>, random: u128) -> Duration {
    let requested = timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    // Longer durations would overflow the clock.
    let requested = requested.map(|seconds| seconds.min(u64::from(u32::MAX)));
    let more = u64::try_from(random % u128::from(DURATION_MIN_SECONDS)).unwrap_or_default();
    Duration::from_secs(requested.unwrap_or(DURATION_MIN_SECONDS + more))
}

/// Starts a stream: sends headers immediately, and events as they occur.
pub fn stream(shared: Arc<Shared>, watch: Watch, form: Form, duration: Duration, slot: Slot) -> Reply {
    // One chunk waits for the client while the next is filled.
    let (out, chunks) = channel(1);
    let stream = Stream {
        changes: shared.changes_of(watch.kind),
        shutdown: shared.shutdown(),
        shared,
        watch,
        form,
        out,
        chunk: Vec::new(),
        columns_sent: false,
        ends: Instant::now() + duration,
        ends_with_bookmark: duration > BOOKMARK_BEFORE_END,
        _slot: slot,
    };
    tokio::spawn(stream.run());
    reply(200, HeaderValue::from_static("application/json"), Body::Events(chunks))
}

struct Stream {
    shared: Arc<Shared>,
    watch: Watch,
    form: Form,
    changes: Receiver<u64>,
    shutdown: Receiver<bool>,
    out: Sender<Bytes>,
    chunk: Vec<u8>,
    columns_sent: bool,
    ends: Instant,
    /// Whether a bookmark is still due before the end, if bookmarks were requested.
    ends_with_bookmark: bool,
    _slot: Slot,
}

/// The client disconnected, or the watch timed out.
struct StreamEnded;

impl Stream {
    async fn run(mut self) {
        // The client only sees that the stream ends.
        let _ = self.send_events().await;
    }

    async fn send_events(&mut self) -> Result<(), StreamEnded> {
        self.send_initial().await?;
        let mut bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
        let mut bookmark_due = false;
        loop {
            self.changes.mark_unchanged();
            let (changes, revision) = match self.pull() {
                Ok(pulled) => pulled,
                Err(status) => {
                    self.write_error(&status);
                    return self.send().await;
                }
            };
            let has_more = changes.len() == CHANGES_PER_READ;
            let seen = if has_more { changes.last().map_or(revision, |change| change.revision) } else { revision };
            for change in &changes {
                if let Some(event) = self.watch.select(change) {
                    self.write(event.kind, &event.object);
                }
            }
            // A client may start at a revision in the future.
            self.watch.revision = self.watch.revision.max(seen);
            if std::mem::take(&mut bookmark_due) {
                self.write_bookmark("");
                self.ends_with_bookmark &= Instant::now() < self.ends - BOOKMARK_BEFORE_END;
                bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
            }
            if self.shared.persisted(seen).await.is_err() {
                return Err(StreamEnded);
            }
            self.send().await?;
            if !has_more {
                bookmark_due = self.wait(bookmark_at).await?;
            }
        }
    }

    /// Sends the initial objects, if they were requested.
    async fn send_initial(&mut self) -> Result<(), StreamEnded> {
        for object in std::mem::take(&mut self.watch.initial) {
            self.write(WatchEventType::Added, &object);
            if self.chunk.len() >= CHUNK_BYTES {
                self.send().await?;
            }
        }
        if self.watch.mark_initial_end {
            self.write_bookmark(r#","annotations":{"k8s.io/initial-events-end":"true"}"#);
        }
        self.send().await
    }

    fn pull(&self) -> Result<(Vec<crate::store::HistoryEntry>, u64), Status> {
        let watch = &self.watch;
        let (changes, revision) =
            self.shared.read(|api| api.changes_after(watch.kind, watch.revision, u64::MAX, CHANGES_PER_READ));
        Ok((changes?, revision))
    }

    /// Waits for changes; returns whether a bookmark is due.
    async fn wait(&mut self, bookmark_at: Instant) -> Result<bool, StreamEnded> {
        let before_end = self.ends - BOOKMARK_BEFORE_END;
        let bookmark = if self.ends_with_bookmark { bookmark_at.min(before_end) } else { bookmark_at };
        tokio::select! {
            // In this order, so that the last bookmark precedes the end even if both are overdue.
            biased;
            () = self.out.closed() => Err(StreamEnded),
            _ = self.shutdown.changed() => Err(StreamEnded),
            () = sleep_until(bookmark), if self.watch.bookmarks => Ok(true),
            () = sleep_until(self.ends) => Err(StreamEnded),
            changes = self.changes.changed() => changes.map(|()| false).map_err(|_| StreamEnded),
        }
    }

    async fn send(&mut self) -> Result<(), StreamEnded> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        tokio::select! {
            sent = timeout_at(self.ends, self.out.send(chunk)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(StreamEnded),
            },
            _ = self.shutdown.changed() => Err(StreamEnded),
        }
    }

    fn write(&mut self, event: WatchEventType, object: &[u8]) {
        let name = match event {
            WatchEventType::Added => "ADDED",
            WatchEventType::Modified => "MODIFIED",
            WatchEventType::Deleted => "DELETED",
        };
        self.write_event(name, object);
    }

    fn write_event(&mut self, name: &str, object: &[u8]) {
        let out = &mut self.chunk;
        push(out, format_args!(r#"{{"type":"{name}","object":"#));
        match &mut self.form {
            Form::Plain => out.extend_from_slice(object),
            Form::Partial(version) => write_partial(out, version, object),
            Form::Table(table) => {
                table.now = jiff::Timestamp::now();
                table.write_single(out, object, !std::mem::replace(&mut self.columns_sent, true));
            }
        }
        out.extend_from_slice(b"}\n");
    }

    fn write_bookmark(&mut self, more_metadata: &str) {
        let kind = self.watch.kind;
        let object = format!(
            r#"{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{more_metadata}}}}}"#,
            kind.kind,
            kind.api_version(),
            self.watch.revision
        );
        self.write_event("BOOKMARK", object.as_bytes());
    }

    fn write_error(&mut self, status: &Status) {
        let out = &mut self.chunk;
        out.extend_from_slice(br#"{"type":"ERROR","object":"#);
        serde_json::to_writer(&mut *out, status).expect("writing to memory cannot fail");
        out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_without_timeout_lasts_between_half_an_hour_and_an_hour() {
        for random in [0, 1, 1799, 1800, u128::MAX] {
            for requested in [None, Some(0), Some(-5)] {
                assert!((1800..3600).contains(&watch_duration(requested, random).as_secs()));
            }
            assert_eq!(watch_duration(Some(7), random), Duration::from_secs(7));
        }
        assert!(Instant::now().checked_add(watch_duration(Some(i64::MAX), 0)).is_some());
    }
}
