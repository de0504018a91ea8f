//! The folder itself: whose it is, what may lie in it, and that what was put into it stays there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::host::files::{make_private_folder, sync_folder};

const LOCK: &str = "lock";
const STORE: &str = "store.redb";
const UNFINISHED: &str = "store.redb.new";
/// What only a server that had a store leaves behind.
const KEYS: [&str; 3] = ["ca.crt", "ca.key", "token"];

/// A folder that is ours as long as this lives. The system takes the lock back however the process ends.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Claims a folder, which is made if it is not there.
    pub fn claim(path: &Path) -> Result<Folder, String> {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        make_private_folder(&path)?;
        refuse_foreign(&path)?;
        let lock = lock(&path)?;
        Ok(Folder { path, _lock: lock })
    }

    /// Where the objects are.
    pub fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }

    /// Whether there are any.
    pub fn has_store(&self) -> bool {
        self.store().exists()
    }

    /// A file in which a store is begun. NoObserver has been promised anything of one that was left unfinished.
    pub fn begin_store(&self) -> Result<File, String> {
        let path = self.path.join(UNFINISHED);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(format!("{}: {error}", path.display())),
            Ok(()) | Err(_) => {}
        }
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        opened.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Puts the store that was begun, and is synced, into its place for good.
    pub fn finish_store(&self) -> Result<(), String> {
        let moved = std::fs::rename(self.path.join(UNFINISHED), self.store());
        moved.map_err(|error| format!("{}: {error}", self.store().display()))?;
        sync_folder(&self.path)?;
        // Those above it may be new too. One that we may not open is none that we have made.
        for above in self.path.ancestors().skip(1) {
            let _ = sync_folder(above);
        }
        Ok(())
    }
}

/// Refuses a folder without a store in which something else lies: what is not ours is not to be mixed with ours, and a store that was
/// there once is not to be replaced by an empty one.
fn refuse_foreign(path: &Path) -> Result<(), String> {
    if path.join(STORE).exists() {
        return Ok(());
    }
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    for entry in std::fs::read_dir(path).map_err(said)? {
        let name = entry.map_err(said)?.file_name();
        let name = name.to_string_lossy();
        if KEYS.contains(&&*name) {
            return Err(format!(
                "{} holds {name}, but no {STORE}: bring that back, or remove {} to begin with nothing",
                path.display(),
                KEYS.join(", ")
            ));
        }
        if ![LOCK, UNFINISHED, "lost+found"].contains(&&*name) {
            return Err(format!(
                "{} holds {name}, which is not of this server, and no {STORE}: name a folder of its own, which may be missing or empty",
                path.display()
            ));
        }
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, String> {
    let path = folder.join(LOCK);
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = options.map_err(said)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(said(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only to help whoever reads the message.
            let _ = file.read_to_string(&mut holder);
            let holder = Some(holder.trim()).filter(|holder| !holder.is_empty()).unwrap_or("unknown");
            return Err(format!("{} is in use by another server (process {holder})", folder.display()));
        }
    }
    file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(said)?;
    Ok(file)
}
