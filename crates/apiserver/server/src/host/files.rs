//! Files and directories that only their owner can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes a file with mode 0600 atomically: to a temporary file, which then replaces the old one.
pub fn write_private(path: &Path, text: &str) -> Result<(), String> {
    let io_error = |error: std::io::Error| format!("{}: {error}", path.display());
    let name = path.file_name().ok_or_else(|| format!("{} is not the path of a file", path.display()))?;
    let temporary = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    // A file left by an earlier process with the same ID may have another mode.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(io_error)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| std::fs::rename(&temporary, path));
    moved.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        io_error(error)
    })?;
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).map_or(Ok(()), sync_dir)
}

/// Ensures that the entries of a directory survive a power failure.
pub fn sync_dir(path: &Path) -> Result<(), String> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    synced.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file that may not exist.
pub fn read_private(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Creates a directory with mode 0700, and its parents, unless it exists.
pub fn create_private_dir(path: &Path) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn writing_makes_a_readable_file_private() {
        let dir = std::env::temp_dir().join(format!("bindery-files-{}", std::process::id()));
        create_private_dir(&dir).expect("the directory is created");
        let path = dir.join("secret");
        std::fs::write(&path, "old").expect("the file is written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode can be set");
        write_private(&path, "new").expect("the file is written");
        assert_eq!(read_private(&path), Ok(Some("new".to_owned())));
        let mode = std::fs::metadata(&path).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 1, "the temporary file is removed");
        std::fs::remove_dir_all(&dir).expect("the directory is removed");
    }
}
