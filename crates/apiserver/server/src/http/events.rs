//! Watches: a cursor into history for each, pulled when there is something new and the client has room for it.
//!
//! A client that reads slowly holds back nobody: what waits for it is one chunk, and its cursor. If it comes back after history
//! has gone on without it, it is told so with a 410, and begins anew.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::body::{Body, CHUNK_BYTES};
use super::reply::{Reply, reply};
use super::shape::{Form, push, write_partial};
use super::shared::Shared;
use crate::api::{Watch, WatchEventType};
use crate::status::Status;

/// How many changes are looked at while the store is locked.
const CHANGES_AT_ONCE: usize = 256;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Who does not say how long gets between this long and twice as long, so that not all come back at once.
const LASTS_AT_LEAST_SECONDS: u64 = 1800;

/// How long a watch lasts.
pub fn lasts(timeout_seconds: Option<i64>, chance: u128) -> Duration {
    let asked = timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    // A duration that no clock can add is none that anybody waits for.
    let asked = asked.map(|seconds| seconds.min(u64::from(u32::MAX)));
    let more = u64::try_from(chance % u128::from(LASTS_AT_LEAST_SECONDS)).unwrap_or_default();
    Duration::from_secs(asked.unwrap_or(LASTS_AT_LEAST_SECONDS + more))
}

/// Begins a stream: its headers go out at once, and its events as they come.
pub fn stream(shared: Arc<Shared>, watch: Watch, form: Form, lasts: Duration) -> Reply {
    // One chunk that waits for the client while the next is put together.
    let (out, chunks) = channel(1);
    let stream = Stream {
        news: shared.changes_of(watch.kind),
        stops: shared.stops(),
        shared,
        watch,
        form,
        out,
        chunk: Vec::new(),
        columns_told: false,
        ends: Instant::now() + lasts,
        ends_with_bookmark: lasts > BOOKMARK_BEFORE_END,
    };
    tokio::spawn(stream.run());
    reply(200, HeaderValue::from_static("application/json"), Body::Events(chunks))
}

struct Stream {
    shared: Arc<Shared>,
    watch: Watch,
    form: Form,
    news: Receiver<u64>,
    stops: Receiver<bool>,
    out: Sender<Bytes>,
    chunk: Vec<u8>,
    columns_told: bool,
    ends: Instant,
    /// A bookmark is due before it ends, if they were asked for.
    ends_with_bookmark: bool,
}

/// The client has gone, or its time is over.
struct Over;

impl Stream {
    async fn run(mut self) {
        // Whatever ends a stream, its end is all that the client is told.
        let _ = self.tell_all().await;
    }

    async fn tell_all(&mut self) -> Result<(), Over> {
        self.tell_initial().await?;
        let mut bookmark_at = Instant::now() + BOOKMARK_EVERY;
        let mut bookmark_due = false;
        loop {
            self.news.mark_unchanged();
            let (changes, revision) = match self.pull() {
                Ok(pulled) => pulled,
                Err(status) => {
                    self.write_error(&status);
                    return self.send().await;
                }
            };
            let has_more = changes.len() == CHANGES_AT_ONCE;
            let seen = if has_more { changes.last().map_or(revision, |change| change.revision) } else { revision };
            for change in &changes {
                if let Some(event) = self.watch.select(change) {
                    self.write(event.kind, &event.object);
                }
            }
            // A client may have asked for what comes after a revision that is yet to come.
            self.watch.revision = self.watch.revision.max(seen);
            if std::mem::take(&mut bookmark_due) {
                self.write_bookmark("");
                self.ends_with_bookmark &= Instant::now() < self.ends - BOOKMARK_BEFORE_END;
                bookmark_at = Instant::now() + BOOKMARK_EVERY;
            }
            if self.shared.persisted(seen).await.is_err() {
                return Err(Over);
            }
            self.send().await?;
            if !has_more {
                bookmark_due = self.wait(bookmark_at).await?;
            }
        }
    }

    /// The state at the beginning, if it was asked for.
    async fn tell_initial(&mut self) -> Result<(), Over> {
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

    fn pull(&self) -> Result<(Vec<crate::store::Change>, u64), Status> {
        let watch = &self.watch;
        let (changes, revision) =
            self.shared.read(|api| api.changes_after(watch.kind, watch.revision, u64::MAX, CHANGES_AT_ONCE));
        Ok((changes?, revision))
    }

    /// Waits for something to tell; answers whether a bookmark is due.
    async fn wait(&mut self, bookmark_at: Instant) -> Result<bool, Over> {
        let before_end = self.ends - BOOKMARK_BEFORE_END;
        let bookmark = if self.ends_with_bookmark { bookmark_at.min(before_end) } else { bookmark_at };
        tokio::select! {
            // In this order: where all of it is late, the last bookmark still comes before the end.
            biased;
            () = self.out.closed() => Err(Over),
            _ = self.stops.changed() => Err(Over),
            () = sleep_until(bookmark), if self.watch.bookmarks => Ok(true),
            () = sleep_until(self.ends) => Err(Over),
            news = self.news.changed() => news.map(|()| false).map_err(|_| Over),
        }
    }

    async fn send(&mut self) -> Result<(), Over> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        tokio::select! {
            sent = timeout_at(self.ends, self.out.send(chunk)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) | Err(_) => Err(Over),
            },
            _ = self.stops.changed() => Err(Over),
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
                table.write_single(out, object, !std::mem::replace(&mut self.columns_told, true));
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
        serde_json::to_writer(&mut *out, status).expect("memory can be written to");
        out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_no_time_gets_between_half_an_hour_and_an_hour() {
        for chance in [0, 1, 1799, 1800, u128::MAX] {
            for asked in [None, Some(0), Some(-5)] {
                assert!((1800..3600).contains(&lasts(asked, chance).as_secs()));
            }
            assert_eq!(lasts(Some(7), chance), Duration::from_secs(7));
        }
        assert!(Instant::now().checked_add(lasts(Some(i64::MAX), 0)).is_some());
    }
}
