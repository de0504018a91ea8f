//! Snapshots: a data directory written from the lines of `/snapshot`, while the server runs.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::data_dir::DataDir;
use super::database::ObjectDatabase;
use crate::kinds;
use crate::store::JournalRecord;

/// Incremented when older programs can no longer read the lines.
pub const SNAPSHOT_FORMAT: u64 = 1;
/// How many bytes of objects are written together.
const BATCH_BYTES: usize = 8 << 20;

/// The first line of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotHeader {
    /// [`SNAPSHOT_FORMAT`].
    pub format: u64,
    /// The revision of all objects.
    pub revision: u64,
    /// The number of lines that follow.
    pub objects: u64,
    /// The server's keys.
    pub keys: SnapshotKeys,
}

/// The keys that a data directory contains, as PEM.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotKeys {
    /// The certificate of the authority.
    pub authority: String,
    /// Its key.
    pub authority_key: String,
    /// The administrator's token.
    pub token: String,
}

/// Secrets are not printed.
impl std::fmt::Debug for SnapshotKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SnapshotKeys")
    }
}

/// A data directory that is being written. Until it is finished, no server starts from it.
pub struct SnapshotWriter {
    dir: DataDir,
    database: ObjectDatabase,
    header: SnapshotHeader,
    batch: Vec<JournalRecord>,
    batch_bytes: usize,
    written: u64,
}

impl SnapshotWriter {
    /// Starts with the first line. The directory must not exist, or be empty.
    pub fn create(path: &Path, first_line: &str) -> Result<SnapshotWriter, String> {
        let header: SnapshotHeader =
            serde_json::from_str(first_line).map_err(|error| format!("the server sent no snapshot: {error}"))?;
        if header.format != SNAPSHOT_FORMAT {
            return Err(format!(
                "the snapshot has format {}, and this version reads format {SNAPSHOT_FORMAT}: use the server's version of bindery",
                header.format
            ));
        }
        let is_used = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            return Err(format!("{} is not empty: use a new directory", path.display()));
        }
        let dir = DataDir::open(path)?;
        let database = ObjectDatabase::begin_in(&dir)?;
        Ok(SnapshotWriter { dir, database, header, batch: Vec::new(), batch_bytes: 0, written: 0 })
    }

    /// Adds the object of a line.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let invalid = |error: &dyn std::fmt::Display| format!("the server sent an invalid snapshot: {error}");
        let (bucket, key, object): (String, String, Box<RawValue>) =
            serde_json::from_str(line).map_err(|error| invalid(&error))?;
        let kind = kinds::all().iter().find(|kind| kind.bucket() == bucket);
        let kind = kind.ok_or_else(|| invalid(&format!("unknown kind {bucket:?}")))?;
        let value = object.get().as_bytes().to_vec();
        self.batch_bytes += value.len();
        self.batch.push(JournalRecord {
            revision: self.header.revision,
            bucket: kind.bucket(),
            key: Arc::from(key),
            value: Some(value.into()),
        });
        if self.batch_bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), String> {
        self.database.commit(&self.batch)?;
        self.written += self.batch.len() as u64;
        (self.batch_bytes, self.batch) = (0, Vec::new());
        Ok(())
    }

    /// Completes the directory. Returns its number of objects and its revision.
    pub fn finish(mut self) -> Result<(u64, u64), String> {
        self.flush()?;
        let SnapshotHeader { revision, objects, keys, .. } = self.header;
        if self.written != objects {
            return Err(format!(
                "the connection ended after {} of {objects} objects: the snapshot is incomplete",
                self.written
            ));
        }
        drop(self.database);
        self.dir.write_keys(&keys.authority, &keys.authority_key, &keys.token)?;
        self.dir.finish_store()?;
        Ok((objects, revision))
    }
}
