//! The database file: every object as it is served, the revision, and the number of objects.
//!
//! No history is stored: after a restart, older watches have to list again, as after a compaction.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use ring::digest::{Context, SHA256};

use super::data_dir::DataDir;
use crate::api::{Api, RequestContext, Settings};
use crate::store::JournalRecord;

/// Objects by bucket and key. A value is a digest followed by the object.
const OBJECTS: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const FORMAT: &str = "format";
const REVISION: &str = "revision";
const COUNT: &str = "objects";
/// Incremented when older servers can no longer read the file.
const FORMAT_VERSION: u64 = 1;
/// Objects are read from our own memory, so the database needs little cache.
const CACHE_BYTES: usize = 16 << 20;
/// A smaller file is not worth compacting.
const COMPACTED_BYTES_MIN: u64 = 4 << 20;
/// Enough to detect damage; this is not a protection against tampering.
const DIGEST_BYTES: usize = 8;

/// An open database.
pub struct ObjectDatabase {
    database: Database,
    path: PathBuf,
}

impl ObjectDatabase {
    /// Creates an empty database.
    pub fn create(dir: &DataDir) -> Result<ObjectDatabase, String> {
        let objects = ObjectDatabase::begin_in(dir)?;
        dir.finish_store()?;
        Ok(objects)
    }

    /// Creates an empty database, which gets its final name with [`DataDir::finish_store`].
    pub fn begin_in(dir: &DataDir) -> Result<ObjectDatabase, String> {
        let path = dir.store();
        let created = Builder::new().set_cache_size(CACHE_BYTES).create_file(dir.begin_store()?);
        let objects = ObjectDatabase { database: created.map_err(|error| unusable(&path, &error))?, path };
        objects.begin().map_err(|error| unusable(&objects.path, &*error))?;
        Ok(objects)
    }

    /// Opens an existing database. After a crash, the database repairs itself first.
    pub fn open(path: &Path) -> Result<ObjectDatabase, String> {
        let opened = Builder::new().set_cache_size(CACHE_BYTES).open(path);
        Ok(ObjectDatabase { database: opened.map_err(|error| unusable(path, &error))?, path: path.to_owned() })
    }

    /// Shrinks the file if most of it is free space, which deleted and replaced objects leave.
    pub fn compact(&mut self) -> Result<(), String> {
        let before = self.file_bytes();
        let used = self.used_bytes().map_err(|error| unusable(&self.path, &*error))?;
        if before < COMPACTED_BYTES_MIN || before / 2 < used {
            return Ok(());
        }
        self.database.compact().map_err(|error| format!("{} cannot be compacted: {error}", self.path.display()))?;
        tracing::info!(before, after = self.file_bytes(), "data directory compacted");
        Ok(())
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// The bytes that objects and the structure of the database need.
    fn used_bytes(&self) -> Result<u64, Box<redb::Error>> {
        let transaction = self.database.begin_write().map_err(boxed)?;
        let stats = transaction.stats().map_err(boxed)?;
        transaction.abort().map_err(boxed)?;
        Ok(stats.stored_bytes() + stats.metadata_bytes())
    }

    fn begin(&self) -> Result<(), Box<redb::Error>> {
        let transaction = self.database.begin_write().map_err(boxed)?;
        transaction.open_table(OBJECTS).map_err(boxed)?;
        {
            let mut numbers = transaction.open_table(NUMBERS).map_err(boxed)?;
            for (name, number) in [(FORMAT, FORMAT_VERSION), (REVISION, 0), (COUNT, 0)] {
                numbers.insert(name, number).map_err(boxed)?;
            }
        }
        transaction.commit().map_err(boxed)
    }

    /// The persisted cluster, and its revision.
    pub fn restore(&self, settings: Settings, context: &RequestContext) -> Result<(Api, u64), String> {
        let io_error = |error: Box<redb::Error>| unusable(&self.path, &*error);
        let transaction = self.database.begin_read().map_err(boxed).map_err(io_error)?;
        let numbers = transaction.open_table(NUMBERS).map_err(boxed).map_err(io_error)?;
        let number = |name: &str| -> Result<u64, String> {
            let found = numbers.get(name).map_err(boxed).map_err(io_error)?;
            found.map(|found| found.value()).ok_or_else(|| self.damaged(&format!("the entry {name:?} is missing")))
        };
        let format = number(FORMAT)?;
        if format != FORMAT_VERSION {
            return Err(format!(
                "{} was written by another version of bindery: it has format {format}, and this version reads format {FORMAT_VERSION}",
                self.path.display()
            ));
        }
        let objects = transaction.open_table(OBJECTS).map_err(boxed).map_err(io_error)?;
        let (mut read_error, mut count) = (None, 0_u64);
        let entries = objects.iter().map_err(boxed).map_err(io_error)?.map_while(|entry| {
            let read = entry.map_err(boxed).map_err(io_error).and_then(|(key, value)| {
                let (bucket, key) = key.value();
                let object = self.checked(bucket, key, value.value())?;
                Ok((bucket.to_owned(), key.to_owned(), object))
            });
            count += 1;
            read.map_err(|error| read_error = Some(error)).ok()
        });
        let revision = number(REVISION)?;
        let api = Api::restore(settings, revision, entries, context);
        if let Some(error) = read_error {
            return Err(error);
        }
        let api = api.map_err(|error| self.damaged(&error.0))?;
        let expected = number(COUNT)?;
        if count != expected {
            return Err(self.damaged(&format!("it has {count} of {expected} objects")));
        }
        Ok((api, revision))
    }

    fn checked(&self, bucket: &str, key: &str, value: &[u8]) -> Result<Bytes, String> {
        match value.split_at_checked(DIGEST_BYTES) {
            Some((stored, object)) if stored == digest(bucket, key, object) => Ok(Bytes::copy_from_slice(object)),
            Some(_) | None => Err(self.damaged(&format!("the digest of {bucket} {key:?} does not match"))),
        }
    }

    fn damaged(&self, what: &str) -> String {
        format!("{} is damaged: {what}. Restore the data directory from a backup", self.path.display())
    }

    /// Persists changes in order, all or none.
    pub fn commit(&self, records: &[JournalRecord]) -> Result<(), String> {
        self.try_commit(records).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn try_commit(&self, records: &[JournalRecord]) -> Result<(), Box<redb::Error>> {
        let Some(last) = records.last() else { return Ok(()) };
        let transaction = self.database.begin_write().map_err(boxed)?;
        {
            let mut objects = transaction.open_table(OBJECTS).map_err(boxed)?;
            let mut numbers = transaction.open_table(NUMBERS).map_err(boxed)?;
            let mut count = numbers.get(COUNT).map_err(boxed)?.map_or(0, |count| count.value());
            let mut value = Vec::new();
            for JournalRecord { bucket, key, value: object, .. } in records {
                let key = (*bucket, &**key);
                let Some(object) = object else {
                    count -= u64::from(objects.remove(key).map_err(boxed)?.is_some());
                    continue;
                };
                value.clear();
                value.extend_from_slice(&digest(key.0, key.1, object));
                value.extend_from_slice(object);
                count += u64::from(objects.insert(key, value.as_slice()).map_err(boxed)?.is_none());
            }
            numbers.insert(COUNT, count).map_err(boxed)?;
            numbers.insert(REVISION, last.revision).map_err(boxed)?;
        }
        // Returns after the file is synced.
        transaction.commit().map_err(boxed)
    }
}

fn digest(bucket: &str, key: &str, object: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut context = Context::new(&SHA256);
    for part in [bucket.as_bytes(), b"\0", key.as_bytes(), b"\0", object] {
        context.update(part);
    }
    let mut short = [0; DIGEST_BYTES];
    short.copy_from_slice(&context.finish().as_ref()[..DIGEST_BYTES]);
    short
}

/// redb has an error type for each step, and one that combines them.
fn boxed(error: impl Into<redb::Error>) -> Box<redb::Error> {
    Box::new(error.into())
}

fn unusable(path: &Path, error: &dyn Display) -> String {
    format!("{} cannot be opened: {error}. It is damaged, or was not written by this server", path.display())
}
