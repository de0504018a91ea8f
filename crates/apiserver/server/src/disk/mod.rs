//! A folder in which a cluster outlives its process: its objects in a database, and beside them the keys of the server.
//!
//! A write is answered, and told to anybody, when the database has synced it: see [`Journal`](crate::http::Journal). All writes that came
//! while the disk was busy share the next sync ([`committer`]).

mod committer;
mod folder;
mod objects;

pub use committer::Disk;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::api::{Api, Moment, Settings};
use folder::Folder;
use objects::Objects;

/// Opens a folder, which is made if it is not there: the cluster as it was left, and the journal that goes on from there.
///
/// A folder that somebody else uses, or that holds what this server does not write, is left as it is.
pub fn open(path: &Path, settings: Settings, moment: &Moment) -> Result<(Api, Disk), String> {
    let folder = Folder::claim(path)?;
    let settings = Settings { journal: true, ..settings };
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let objects = if folder.has_store() { Objects::open(&folder.store())? } else { Objects::create(&folder)? };
        let (api, revision) = objects.restore(settings, moment)?;
        Ok::<_, String>((api, objects, revision))
    }));
    // The database asserts what it reads: where a file is damaged, that may be noticed so.
    let damaged = |_| Err(format!("{} is damaged: bring back a copy of the folder", folder.store().display()));
    let (api, objects, revision) = opened.unwrap_or_else(damaged)?;
    let disk = Disk::start(folder, objects, revision)?;
    Ok((api, disk))
}

#[cfg(test)]
mod tests;
