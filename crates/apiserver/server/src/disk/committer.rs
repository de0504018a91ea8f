//! The committer: a thread that persists writes. All writes that arrive while it is busy share the
//! next sync.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::data_dir::DataDir;
use super::database::ObjectDatabase;
use crate::http::Journal;
use crate::store::JournalRecord;

/// A journal in a database. Closing or dropping it unlocks the data directory.
pub struct Disk {
    shared: Arc<Shared>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    woken: Condvar,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct Queue {
    records: Vec<JournalRecord>,
    is_closed: bool,
}

struct Progress {
    /// Everything up to this revision is durable.
    revision: u64,
    /// Why nothing more will be persisted.
    ended: Option<String>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the queue, and drops records that will not be persisted.
    fn close_queue(&self) {
        *self.queue() = Queue { records: Vec::new(), is_closed: true };
    }

    /// Waits for records, and takes all of them; `None` when the queue is closed and empty.
    fn take(&self) -> Option<Vec<JournalRecord>> {
        let is_idle = |queue: &mut Queue| queue.records.is_empty() && !queue.is_closed;
        let waited = self.woken.wait_while(self.queue(), is_idle);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::take(&mut queue.records)).filter(|records| !records.is_empty())
    }
}

impl Disk {
    /// Starts a journal that continues from the revision of the database.
    pub(super) fn start(dir: DataDir, objects: ObjectDatabase, revision: u64) -> Result<Disk, String> {
        let progress = watch::Sender::new(Progress { revision, ended: None });
        let shared = Arc::new(Shared { queue: Mutex::default(), woken: Condvar::new(), progress });
        let committer = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("committer".to_owned()).spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| commit_all(&shared, &objects)));
                let why = match ended {
                    Ok(Ok(())) => "the server is stopped".to_owned(),
                    Ok(Err(error)) => error,
                    Err(_) => "the database panicked: see the log for details".to_owned(),
                };
                shared.close_queue();
                drop(objects);
                drop(dir);
                shared.progress.send_modify(|progress| progress.ended = Some(why));
            })
        };
        let committer = committer.map_err(|error| format!("cannot start the committer thread: {error}"))?;
        Ok(Disk { shared, committer: Mutex::new(Some(committer)) })
    }
}

fn commit_all(shared: &Shared, objects: &ObjectDatabase) -> Result<(), String> {
    while let Some(records) = shared.take() {
        objects.commit(&records)?;
        if let Some(last) = records.last() {
            shared.progress.send_modify(|progress| progress.revision = last.revision);
        }
    }
    Ok(())
}

impl Journal for Disk {
    fn append(&self, records: Vec<JournalRecord>) {
        let mut queue = self.shared.queue();
        // Waiting for a revision that comes too late fails.
        if !queue.is_closed {
            queue.records.extend(records);
            self.shared.woken.notify_one();
        }
    }

    fn persisted(&self, revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
            let mut progress = self.shared.progress.subscribe();
            let is_over = |progress: &Progress| progress.revision >= revision || progress.ended.is_some();
            let progress = progress.wait_for(|progress| is_over(progress)).await.map_err(|error| error.to_string())?;
            match &progress.ended {
                Some(why) if progress.revision < revision => Err(why.clone()),
                Some(_) | None => Ok(()),
            }
        })
    }

    fn close(&self) {
        self.shared.queue().is_closed = true;
        self.shared.woken.notify_one();
        let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(committer) = committer {
            // Its progress tells how it ended, even after a panic.
            let _ = committer.join();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}
