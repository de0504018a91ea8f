//! The data directory: locking, allowed contents, and durability of its entries.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::host::files::{create_private_dir, sync_dir, write_private};

const LOCK: &str = "lock";
const STORE: &str = "store.redb";
const NEW_STORE: &str = "store.redb.new";
/// Files that exist only in the directory of a server that had a store.
const KEYS: [&str; 3] = ["ca.crt", "ca.key", "token"];

/// A data directory that this process has locked. The system releases the lock when the process
/// ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it does not exist, and locks it.
    pub fn open(path: &Path) -> Result<DataDir, String> {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        create_private_dir(&path)?;
        reject_foreign_files(&path)?;
        let lock = lock(&path)?;
        Ok(DataDir { path, _lock: lock })
    }

    /// The path of the database.
    pub fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }

    /// Whether the database exists.
    pub fn has_store(&self) -> bool {
        self.store().exists()
    }

    /// Creates the file for a new database. A previous one that was not finished is removed:
    /// nothing in it was ever acknowledged.
    pub fn begin_store(&self) -> Result<File, String> {
        let path = self.path.join(NEW_STORE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(format!("{}: {error}", path.display())),
            Ok(()) | Err(_) => {}
        }
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        opened.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes the server's keys: certificate and key of the authority, and the token.
    pub fn write_keys(&self, certificate: &str, key: &str, token: &str) -> Result<(), String> {
        for (name, text) in KEYS.into_iter().zip([certificate, key, token]) {
            write_private(&self.path.join(name), text)?;
        }
        Ok(())
    }

    /// Moves the synced new database to its final path.
    pub fn finish_store(&self) -> Result<(), String> {
        let moved = std::fs::rename(self.path.join(NEW_STORE), self.store());
        moved.map_err(|error| format!("{}: {error}", self.store().display()))?;
        sync_dir(&self.path)?;
        // The parents may be new, too. One that cannot be opened was not created by this process.
        for above in self.path.ancestors().skip(1) {
            let _ = sync_dir(above);
        }
        Ok(())
    }
}

/// Rejects a directory with other files but no database: foreign files must not be mixed with ours,
/// and a lost database must not be replaced by an empty one.
fn reject_foreign_files(path: &Path) -> Result<(), String> {
    if path.join(STORE).exists() {
        return Ok(());
    }
    let io_error = |error: std::io::Error| format!("{}: {error}", path.display());
    for entry in std::fs::read_dir(path).map_err(io_error)? {
        let name = entry.map_err(io_error)?.file_name();
        let name = name.to_string_lossy();
        if KEYS.contains(&&*name) {
            return Err(format!(
                "{} contains {name} but no {STORE}: restore {STORE} from a backup, or remove {} to start with an empty cluster",
                path.display(),
                KEYS.join(", ")
            ));
        }
        if ![LOCK, NEW_STORE, "lost+found"].contains(&&*name) {
            return Err(format!(
                "{} contains {name}, which this server did not write, and no {STORE}: use an empty or new directory",
                path.display()
            ));
        }
    }
    Ok(())
}

fn lock(dir: &Path) -> Result<File, String> {
    let path = dir.join(LOCK);
    let io_error = |error: std::io::Error| format!("{}: {error}", path.display());
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = options.map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(io_error(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the error message.
            let _ = file.read_to_string(&mut holder);
            let holder = Some(holder.trim()).filter(|holder| !holder.is_empty()).unwrap_or("unknown");
            return Err(format!("{} is in use by another server (process {holder})", dir.display()));
        }
    }
    file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(io_error)?;
    Ok(file)
}
