//! A data directory that persists a cluster: its objects in a database, and the server's keys.
//!
//! A write is acknowledged and shown to watches only after the database has synced it: see
//! [`Journal`](crate::http::Journal). All writes that arrive while the disk is busy share the next
//! sync (`committer`).

mod committer;
mod data_dir;
mod database;
mod snapshot;

pub use committer::Disk;
pub use snapshot::{SNAPSHOT_FORMAT, SnapshotHeader, SnapshotKeys, SnapshotWriter};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::api::{Api, RequestContext, Settings};
use data_dir::DataDir;
use database::ObjectDatabase;

/// Opens a data directory, which is created if it does not exist. Returns the persisted cluster,
/// and a journal that continues from there.
///
/// A directory that another process uses, or that contains foreign files, is not changed.
pub fn open(path: &Path, settings: Settings, context: &RequestContext) -> Result<(Api, Disk), String> {
    let dir = DataDir::open(path)?;
    let settings = Settings { journal: true, ..settings };
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let mut objects = match dir.has_store() {
            true => ObjectDatabase::open(&dir.store())?,
            false => ObjectDatabase::create(&dir)?,
        };
        let (api, revision) = objects.restore(settings, context)?;
        objects.compact()?;
        Ok::<_, String>((api, objects, revision))
    }));
    // redb panics on some damaged files.
    let damaged = |_| Err(format!("{} is damaged. Restore the data directory from a backup", dir.store().display()));
    let (api, objects, revision) = opened.unwrap_or_else(damaged)?;
    let disk = Disk::start(dir, objects, revision)?;
    Ok((api, disk))
}

#[cfg(test)]
mod tests;
