//! Scans the machine: entries of a directory, mounts, capacities. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatxFlags, flock, open, openat, statx};

use crate::discover::{Entry, Identity, RootDirectory, ScanResult, Shape, UnreadableEntry};

/// How much of a device has to be zero at both ends for it to count as empty.
const BLANK_BYTES: u64 = 1 << 20;

/// Created by file systems; it does not count.
const LOST_AND_FOUND: &str = "lost+found";

/// Reads the files of a configuration. Directories and the internal files of a mounted ConfigMap
/// are skipped.
pub fn read_config(directory: &Path) -> Result<BTreeMap<String, String>, String> {
    let of = |path: &Path| format!("{}: ", path.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(|error| of(directory) + &error.to_string())? {
        let path = entry.map_err(|error| of(directory) + &error.to_string())?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        if name.starts_with("..") || !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| of(&path) + &error.to_string())?;
        files.insert(name, text);
    }
    Ok(files)
}

/// Whether a program exists, at a path or in `PATH`, and is executable.
pub fn is_program(program: &str) -> bool {
    let is_executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| is_executable(&directory.join(program)))
}

/// Identifies a mount. The same file system mounted twice is two mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mount {
    /// The mount ID.
    Id(u64),
    /// The device number, on kernels before 5.8.
    Device(u32, u32),
}

impl Mount {
    pub(crate) fn of(file: impl AsFd) -> io::Result<Mount> {
        let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        let has_id = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        Ok(if has_id { Mount::Id(found.stx_mnt_id) } else { Mount::Device(found.stx_dev_major, found.stx_dev_minor) })
    }
}

/// Opens a configured directory; links in its path are followed.
pub(crate) fn open_configured(directory: &Path) -> io::Result<OwnedFd> {
    Ok(open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a directory by its name in another, without following a link.
pub(crate) fn open_directory(parent: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// An exclusive lock on a disk, across processes. Released when dropped.
#[derive(Debug)]
pub struct DiskLock {
    file: OwnedFd,
}

impl DiskLock {
    /// Locks an open file; `None` if it is locked already.
    pub(crate) fn of(file: OwnedFd) -> io::Result<Option<DiskLock>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(DiskLock { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The open directory or device.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

/// Locks an entry while its volume is created; `None` if it is locked already, for example for
/// cleaning.
pub fn lock(mount_dir: &Path, name: &str, shape: Shape) -> io::Result<Option<DiskLock>> {
    let file = match shape {
        Shape::Directory => open_directory(open_configured(mount_dir)?, name)?,
        Shape::Block | Shape::Other => open_device(&mount_dir.join(name))?.into(),
    };
    DiskLock::of(file)
}

fn open_device(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// Scans the entries of a class's directory. Those whose names do not match are returned by name
/// only.
pub fn scan(
    mount_dir: &Path,
    matches_pattern: impl Fn(&str) -> bool,
    check_empty: bool,
) -> Result<Vec<ScanResult>, String> {
    let of_directory = |error: io::Error| format!("{}: {error}", mount_dir.display());
    let mounted = mount_points().map_err(|error| format!("cannot read the mounts: {error}"))?;
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(mount_dir).map_err(of_directory)? {
        let file_name = entry.map_err(of_directory)?.file_name();
        entries.push(match file_name.into_string() {
            Ok(name) if !matches_pattern(&name) => Ok(Entry {
                name,
                shape: Shape::Other,
                is_mount_point: false,
                bytes: 0,
                is_empty: None,
                identity: None,
                root: None,
            }),
            Ok(name) => scan_entry(mount_dir, &mounted, &name, check_empty).map_err(|error| UnreadableEntry {
                problem: format!("{}: {error}", mount_dir.join(&name).display()),
                name,
            }),
            Err(name) => Err(UnreadableEntry {
                name: name.to_string_lossy().into_owned(),
                problem: format!("{}: the name is not UTF-8", mount_dir.join(name).display()),
            }),
        });
    }
    entries.sort_by(|a, b| name(a).cmp(name(b)));
    Ok(entries)
}

fn name(entry: &ScanResult) -> &str {
    match entry {
        Ok(seen) => &seen.name,
        Err(unseen) => &unseen.name,
    }
}

fn scan_entry(mount_dir: &Path, mounted: &BTreeSet<PathBuf>, name: &str, check_empty: bool) -> io::Result<Entry> {
    let path = mount_dir.join(name);
    let metadata = std::fs::metadata(&path)?;
    let kind = metadata.file_type();
    let shape = match () {
        () if kind.is_dir() => Shape::Directory,
        () if kind.is_block_device() => Shape::Block,
        () => Shape::Other,
    };
    let bytes = match shape {
        Shape::Directory => {
            let file_system = rustix::fs::statvfs(&path)?;
            file_system.f_blocks.saturating_mul(file_system.f_frsize)
        }
        Shape::Block => open_device(&path)?.seek(SeekFrom::End(0))?,
        Shape::Other => 0,
    };
    let is_empty = match shape {
        Shape::Directory if check_empty => Some(is_directory_empty(&path)?),
        Shape::Block if check_empty => Some(is_device_blank(&path, bytes)?),
        Shape::Directory | Shape::Block | Shape::Other => None,
    };
    // Mount points are listed without links. A link to a mount point is not a mount point.
    let is_mount_point = mount_dir.canonicalize().is_ok_and(|directory| mounted.contains(&directory.join(name)));
    let identity = match shape {
        Shape::Directory => Some(Identity::Directory(metadata.dev(), metadata.ino())),
        Shape::Block => Some(Identity::Device(metadata.rdev())),
        Shape::Other => None,
    };
    let root = || RootDirectory { owner: metadata.uid(), group: metadata.gid(), mode: metadata.mode() & 0o7777 };
    Ok(Entry {
        name: name.to_owned(),
        shape,
        is_mount_point,
        bytes,
        is_empty,
        identity,
        root: (shape == Shape::Directory).then(root),
    })
}

/// Whether a directory contains nothing but `lost+found`.
pub fn is_directory_empty(path: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        if entry?.file_name() != LOST_AND_FOUND {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a device has no signature at either end.
fn is_device_blank(path: &Path, bytes: u64) -> io::Result<bool> {
    let device = open_device(path)?;
    let blank_bytes = BLANK_BYTES.min(bytes);
    let mut buffer = vec![0; usize::try_from(blank_bytes).unwrap_or_default()];
    for at in [0, bytes - blank_bytes] {
        device.read_exact_at(&mut buffer, at)?;
        if buffer.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// All mount points of this process.
pub fn mount_points() -> io::Result<BTreeSet<PathBuf>> {
    let mut text = Vec::new();
    File::open("/proc/self/mountinfo")?.read_to_end(&mut text)?;
    Ok(parse_mounts(&text))
}

/// Reads the fifth field of each line, with octal escapes for blanks, tabs, newlines and
/// backslashes.
fn parse_mounts(text: &[u8]) -> BTreeSet<PathBuf> {
    let fields = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    fields.map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescape(field)))).collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = || {
            let digits = after.get(..3).filter(|_| *first == b'\\')?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
        };
        match octal() {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// A file name for messages.
pub(crate) fn shown(name: &[u8]) -> String {
    OsStr::from_bytes(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_escapes_are_parsed() {
        let text = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n\
                     37 35 98:0 / /mnt/back\\134slash rw - ext3 /dev/root rw\n\n36 short\n";
        let mounts: Vec<PathBuf> = parse_mounts(text).into_iter().collect();
        assert_eq!(mounts, [PathBuf::from("/mnt/a b"), PathBuf::from("/mnt/back\\slash")]);
        assert!(mount_points().expect("a list of mounts").contains(Path::new("/proc")));
    }

    #[test]
    fn entries_are_scanned() {
        let root = std::env::temp_dir().join(format!("bindery-look-{}", std::process::id()));
        std::fs::create_dir_all(root.join("dir/inside")).expect("created");
        std::fs::create_dir_all(root.join("blank/lost+found")).expect("created");
        std::fs::write(root.join("file"), "text").expect("written");
        std::os::unix::fs::symlink("dir", root.join("link")).expect("linked");
        std::os::unix::fs::symlink("/proc", root.join("to-proc")).expect("linked");
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).expect("linked");
        let entries = scan(&root, |name| name != "file", true).expect("looked");
        let brief: Vec<(String, Option<_>)> = entries
            .iter()
            .map(|entry| {
                let seen = entry.as_ref().ok().map(|seen| (seen.shape, seen.is_mount_point, seen.is_empty));
                (name(entry).to_owned(), seen)
            })
            .collect();
        let directory = |is_empty| Some((Shape::Directory, false, Some(is_empty)));
        assert_eq!(
            brief,
            [
                ("blank".to_owned(), directory(true)),
                ("dangling".to_owned(), None),
                ("dir".to_owned(), directory(false)),
                ("file".to_owned(), Some((Shape::Other, false, None))),
                ("link".to_owned(), directory(false)),
                ("to-proc".to_owned(), directory(false)),
            ]
        );
        assert!(scan(&root.join("nowhere"), |_| true, false).is_err());
        std::fs::remove_dir_all(&root).expect("cleaned up");
    }

    #[test]
    fn configuration_consists_of_the_files_of_a_directory() {
        let root = std::env::temp_dir().join(format!("bindery-config-{}", std::process::id()));
        std::fs::create_dir_all(root.join("..2026/x")).expect("created");
        std::fs::write(root.join("..2026/useNodeNameOnly"), "true").expect("written");
        std::os::unix::fs::symlink("..2026", root.join("..data")).expect("linked");
        std::os::unix::fs::symlink("..data/useNodeNameOnly", root.join("useNodeNameOnly")).expect("linked");
        std::os::unix::fs::symlink("..data/x", root.join("x")).expect("linked");
        let files = read_config(&root).expect("read");
        assert_eq!(files.into_iter().collect::<Vec<_>>(), [("useNodeNameOnly".to_owned(), "true".to_owned())]);
        assert!(read_config(&root.join("nowhere")).is_err_and(|error| error.contains("nowhere")));
        std::fs::remove_dir_all(&root).expect("cleaned up");
    }
}
