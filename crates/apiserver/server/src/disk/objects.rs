//! The database file: every object as it is served, the revision, and how many objects there are.
//!
//! No history is kept: after a restart, a watch from before it begins anew, as after a compaction.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use redb::{Builder, Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use ring::digest::{Context, SHA256};

use super::folder::Folder;
use crate::api::{Api, Moment, Settings};
use crate::store::Record;

/// Objects by where they are stored and key. A value is a digest, and what it is of.
const OBJECTS: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const FORMAT: &str = "format";
const REVISION: &str = "revision";
const COUNT: &str = "objects";
/// Raised when an older server could no longer make sense of the file.
const FORMAT_NOW: u64 = 1;
/// All reading is done from memory of our own, so the database needs little.
const CACHE_BYTES: usize = 16 << 20;
/// Enough to notice damage; nobody is to be kept out by it.
const DIGEST_BYTES: usize = 8;

/// An open database.
pub struct Objects {
    database: Database,
    path: PathBuf,
}

impl Objects {
    /// Makes an empty one. It takes its place when it is whole.
    pub fn create(folder: &Folder) -> Result<Objects, String> {
        let path = folder.store();
        let created = Builder::new().set_cache_size(CACHE_BYTES).create_file(folder.begin_store()?);
        let objects = Objects { database: created.map_err(|error| unusable(&path, &error))?, path };
        objects.begin().map_err(|error| unusable(&objects.path, &*error))?;
        folder.finish_store()?;
        Ok(objects)
    }

    /// Opens one that is there. FailureEffect a crash, the database checks itself first.
    pub fn open(path: &Path) -> Result<Objects, String> {
        let opened = Builder::new().set_cache_size(CACHE_BYTES).open(path);
        Ok(Objects { database: opened.map_err(|error| unusable(path, &error))?, path: path.to_owned() })
    }

    fn begin(&self) -> Result<(), Box<redb::Error>> {
        let transaction = self.database.begin_write().map_err(boxed)?;
        transaction.open_table(OBJECTS).map_err(boxed)?;
        {
            let mut numbers = transaction.open_table(NUMBERS).map_err(boxed)?;
            for (name, number) in [(FORMAT, FORMAT_NOW), (REVISION, 0), (COUNT, 0)] {
                numbers.insert(name, number).map_err(boxed)?;
            }
        }
        transaction.commit().map_err(boxed)
    }

    /// The cluster as it was left, and the revision at which that was.
    pub fn restore(&self, settings: Settings, moment: &Moment) -> Result<(Api, u64), String> {
        let said = |error: Box<redb::Error>| unusable(&self.path, &*error);
        let transaction = self.database.begin_read().map_err(boxed).map_err(said)?;
        let numbers = transaction.open_table(NUMBERS).map_err(boxed).map_err(said)?;
        let number = |name: &str| -> Result<u64, String> {
            let found = numbers.get(name).map_err(boxed).map_err(said)?;
            found.map(|found| found.value()).ok_or_else(|| self.damaged(&format!("it has no {name}")))
        };
        let format = number(FORMAT)?;
        if format != FORMAT_NOW {
            return Err(format!(
                "{} was written by another version of bindery: it has format {format}, and this one reads {FORMAT_NOW}",
                self.path.display()
            ));
        }
        let objects = transaction.open_table(OBJECTS).map_err(boxed).map_err(said)?;
        let (mut flaw, mut count) = (None, 0_u64);
        let entries = objects.iter().map_err(boxed).map_err(said)?.map_while(|entry| {
            let read = entry.map_err(boxed).map_err(said).and_then(|(key, value)| {
                let (space, key) = key.value();
                let object = self.checked(space, key, value.value())?;
                Ok((space.to_owned(), key.to_owned(), object))
            });
            count += 1;
            read.map_err(|error| flaw = Some(error)).ok()
        });
        let revision = number(REVISION)?;
        let api = Api::restore(settings, revision, entries, moment);
        if let Some(flaw) = flaw {
            return Err(flaw);
        }
        let api = api.map_err(|flaw| self.damaged(&flaw.0))?;
        let expected = number(COUNT)?;
        if count != expected {
            return Err(self.damaged(&format!("{count} of {expected} objects are found")));
        }
        Ok((api, revision))
    }

    fn checked(&self, space: &str, key: &str, value: &[u8]) -> Result<Bytes, String> {
        match value.split_at_checked(DIGEST_BYTES) {
            Some((said, object)) if said == digest(space, key, object) => Ok(Bytes::copy_from_slice(object)),
            Some(_) | None => Err(self.damaged(&format!("{space} {key:?} is not what was written"))),
        }
    }

    fn damaged(&self, what: &str) -> String {
        format!("{} is damaged: {what}. Bring back a copy of the folder", self.path.display())
    }

    /// Makes changes durable, all or none. They are in order.
    pub fn commit(&self, records: &[Record]) -> Result<(), String> {
        self.try_commit(records).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn try_commit(&self, records: &[Record]) -> Result<(), Box<redb::Error>> {
        let Some(last) = records.last() else { return Ok(()) };
        let transaction = self.database.begin_write().map_err(boxed)?;
        {
            let mut objects = transaction.open_table(OBJECTS).map_err(boxed)?;
            let mut numbers = transaction.open_table(NUMBERS).map_err(boxed)?;
            let mut count = numbers.get(COUNT).map_err(boxed)?.map_or(0, |count| count.value());
            let mut value = Vec::new();
            for Record { space, key, value: object, .. } in records {
                let key = (*space, &**key);
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
        // Comes back when the file is synced.
        transaction.commit().map_err(boxed)
    }
}

fn digest(space: &str, key: &str, object: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut context = Context::new(&SHA256);
    for part in [space.as_bytes(), b"\0", key.as_bytes(), b"\0", object] {
        context.update(part);
    }
    let mut short = [0; DIGEST_BYTES];
    short.copy_from_slice(&context.finish().as_ref()[..DIGEST_BYTES]);
    short
}

/// The database has an error type for each step, and one for all.
fn boxed(error: impl Into<redb::Error>) -> Box<redb::Error> {
    Box::new(error.into())
}

fn unusable(path: &Path, error: &dyn Display) -> String {
    format!("{} cannot be used: {error}. It is damaged, or not of this server", path.display())
}
