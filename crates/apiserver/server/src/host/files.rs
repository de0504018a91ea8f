//! Files that nobody else may read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes a file with mode 0600, whole or not at all: it is written beside, and then takes the place of what was there.
pub fn write_private(path: &Path, text: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let name = path.file_name().ok_or_else(|| format!("{} names no file", path.display()))?;
    let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    // What a process of the same number left behind may have another mode.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(said(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(said)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    moved.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        said(error)
    })?;
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), sync_folder)
}

/// Makes sure that what was put into a folder is still there after a power failure.
pub fn sync_folder(path: &Path) -> Result<(), String> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a file that may not be there.
pub fn read_private(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Makes a folder with mode 0700, and those above it, unless it is there.
pub fn make_private_folder(path: &Path) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_everybody_could_read_becomes_private() {
        let folder = std::env::temp_dir().join(format!("bindery-files-{}", std::process::id()));
        make_private_folder(&folder).expect("a folder can be made");
        let path = folder.join("secret");
        std::fs::write(&path, "old").expect("a file can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode can be set");
        write_private(&path, "new").expect("a file can be written");
        assert_eq!(read_private(&path), Ok(Some("new".to_owned())));
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is left beside it");
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
